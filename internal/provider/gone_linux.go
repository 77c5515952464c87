package provider

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// terraformGone waits until Terraform is gone, killed maybe: nobody reads this process's standard output any more then.
// Unlike the parent's process id, that can be told whenever it happens. It returns false where it can't be told.
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
