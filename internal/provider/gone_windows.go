package provider

import "os"

// terraformGone waits until Terraform, the parent of this process, is gone, killed maybe. It returns false where it
// can't be told.
func terraformGone() bool {
	parent, err := os.FindProcess(os.Getppid())
	if err != nil {
		return false
	}
	_, err = parent.Wait() // which on Windows takes any process
	return err == nil
}
