//go:build linux

// Package rights lets root act with another user's rights to files.
package rights

import (
	"errors"
	"fmt"
	"os/user"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// As runs f with the rights of a user, a group and additional groups to files, and no others: whatever the user's own
// processes have put there, such as a link, f can't reach more than they can.
func As(uid, gid int, groups []uint32, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		// Not unix.Setgroups, which would change all threads.
		list := unsafe.Pointer(unsafe.SliceData(groups)) //nolint:gosec // that is how a system call takes a list
		_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(list), 0)
		if errno != 0 {
			done <- errno
			return
		}
		_, errGroup := unix.SetfsgidRetGid(gid)
		_, errUser := unix.SetfsuidRetUid(uid)
		if err := errors.Join(errGroup, errUser); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Groups returns the ID of a user's group, and those of the groups that list the user.
func Groups(of *user.User) ([]uint32, error) {
	ids, err := of.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("reading the groups of user %q: %w", of.Username, err)
	}
	groups := make([]uint32, len(ids))
	for i, id := range ids {
		number, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, err
		}
		groups[i] = uint32(number)
	}
	return groups, nil
}
