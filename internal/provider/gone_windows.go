package provider

import "os"

// terraformGone waits until Terraform, the parent process, is gone, for example killed. It returns
// false if it can't find out.
func terraformGone(*os.File) bool {
	parent, err := os.FindProcess(os.Getppid())
	if err != nil {
		return false
	}
	_, err = parent.Wait() // on Windows it accepts any process
	return err == nil
}
