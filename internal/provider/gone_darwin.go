package provider

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// launchd adopts processes that outlive their parents.
const launchd = 1

// terraformGone waits until Terraform, the parent process, is gone, for example killed. It returns
// false if it can't find out.
func terraformGone(*os.File) bool {
	parent := os.Getppid()
	if parent == launchd {
		return true
	}
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)
	exit := make([]unix.Kevent_t, 1)
	unix.SetKevent(&exit[0], parent, unix.EVFILT_PROC, unix.EV_ADD)
	exit[0].Fflags = unix.NOTE_EXIT
	for {
		events := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(queue, exit, events, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 1 && events[0].Flags&unix.EV_ERROR != 0 {
			err = unix.Errno(events[0].Data) //nolint:gosec // it is an errno
		}
		return n == 1 && err == nil || errors.Is(err, unix.ESRCH)
	}
}
