//go:build unix

package command

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of the one that it replaces, as far as that is possible, and returns
// the permissions for it: if it belongs to another group, that one gets no more access than all others.
func keepOwner(file *os.File, replaced os.FileInfo) os.FileMode {
	mode := replaced.Mode().Perm()
	owner, known := replaced.Sys().(*syscall.Stat_t)
	if !known || file.Chown(int(owner.Uid), int(owner.Gid)) == nil || file.Chown(-1, int(owner.Gid)) == nil {
		return mode
	}
	if info, err := file.Stat(); err == nil {
		if now, _ := info.Sys().(*syscall.Stat_t); now != nil && now.Gid == owner.Gid {
			return mode // on a file system with fixed owners
		}
	}
	return mode & (0o707 | mode<<3)
}
