//go:build linux

package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// folderPrefix is the prefix of the names of beds' folders and control groups.
const folderPrefix = "trainyard-testbed-"

// removeLimit is how long processes may take to end after the kernel kills them.
const removeLimit = patience.Limit

// folder holds all files of a bed. Whoever holds its lock owns it; the kernel releases the lock when the owner ends in
// any way.
type folder struct {
	path string
	lock *os.File
}

// newFolder creates and locks a folder.
func newFolder() (*folder, error) {
	for {
		path, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return nil, err
		}
		// Another process that looks for leftovers may lock it first, and owns it then.
		claimed, err := claim(path)
		if err != nil {
			return nil, err
		}
		if claimed != nil {
			return claimed, nil
		}
	}
}

// claim locks a folder. It returns nil if the folder is locked by another process or gone.
func claim(path string) (*folder, error) {
	lock, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var status unix.Stat_t
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.Fstat(int(lock.Fd()), &status)
	}
	if err != nil || status.Nlink == 0 {
		_ = lock.Close() // it was only read
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return nil, err
	}
	return &folder{path: path, lock: lock}, nil
}

// name is the folder's name, which is also the name of the bed's control group.
func (f *folder) name() string { return filepath.Base(f.path) }

// remove removes the control groups and the folder, and then releases the lock.
func (f *folder) remove() error {
	err := onceEnded(func() error { return errors.Join(removeControlGroups(f.name()), os.RemoveAll(f.path)) })
	return errors.Join(err, f.lock.Close())
}

// onceEnded retries remove while processes that hold things may still be ending, such as those of an owner that was
// just killed.
func onceEnded(remove func() error) error {
	look := time.NewTicker(poll)
	defer look.Stop()
	deadline := time.After(removeLimit)
	for {
		err := remove()
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-deadline:
			return err
		}
	}
}

// sweep removes what beds left behind whose owner has ended.
func sweep() error {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		leftover, err := claim(path)
		if err != nil {
			return fmt.Errorf("a test bed that was left behind: %w", err)
		}
		if leftover == nil {
			continue
		}
		if err := leftover.remove(); err != nil {
			return fmt.Errorf("removing a test bed that was left behind: %w", err)
		}
	}
	return nil
}
