package provider

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// terraformGone waits until Terraform is gone, for example killed: then nobody reads the output with which this
// process started any more. Unlike a change of the parent's process ID, that is noticed whenever it happened. It
// returns false if it can't find out.
func terraformGone(output *os.File) bool {
	defer runtime.KeepAlive(output)                // files that nobody uses are closed
	end := []unix.PollFd{{Fd: int32(output.Fd())}} //nolint:gosec // it is 1
	for {
		_, err := unix.Poll(end, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && end[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
