//go:build linux

package program

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
)

// renouncePrivileges makes sure that no program that this process execs or starts gains privileges, for
// example by a setuid bit. The flag is per thread, so this thread sets it and then execs the program again,
// whose threads all inherit it.
func renouncePrivileges() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	done, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && done == 1 {
		return nil
	}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = syscall.Exec(supervisor.Executable(), os.Args, os.Environ()) //nolint:gosec // this very program
	}
	return fmt.Errorf("dropping privileges: %w", err)
}
