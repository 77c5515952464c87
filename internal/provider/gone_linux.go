package provider

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// terraformGone waits until Terraform is gone, for example killed: then nobody reads this process's standard
// output any more. Unlike a change of the parent's process ID, that is noticed whenever it happened. It returns
// false if it can't find out.
func terraformGone() bool {
	output := []unix.PollFd{{Fd: int32(os.Stdout.Fd())}} //nolint:gosec // it is 1
	for {
		_, err := unix.Poll(output, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && output[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
