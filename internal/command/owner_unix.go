//go:build unix

package command

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of the one that it replaces, as far as that is possible, and returns
// the permissions for it: if it belongs to another group, that one gets no more access than all others.
func keepOwner(file string, replaced os.FileInfo) os.FileMode {
	mode := replaced.Mode().Perm()
	owner, known := replaced.Sys().(*syscall.Stat_t)
	if !known || os.Chown(file, int(owner.Uid), int(owner.Gid)) == nil ||
		os.Chown(file, -1, int(owner.Gid)) == nil {
		return mode
	}
	if info, err := os.Stat(file); err == nil {
		if now, _ := info.Sys().(*syscall.Stat_t); now != nil && now.Gid == owner.Gid {
			return mode // on a file system with fixed owners
		}
	}
	return mode & (0o707 | mode<<3)
}
