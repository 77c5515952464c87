//go:build linux

package statedir

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Lock is a lock that this process holds. It ends with the process.
type Lock struct{ file *os.File }

// SupervisorLock is the name of the lock that the supervisor holds while it runs.
const SupervisorLock = "supervisor"

// Lock takes a lock without waiting, and stores a note about its holder in it. If somebody else holds it, the error is
// an [*engine.LockedError]; if there is no such cluster, [engine.ErrNotFound].
func (d Dir) Lock(name string, holder engine.Holder) (*Lock, error) {
	file, err := d.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			noted := readHolder(file)
			return nil, &engine.LockedError{Lock: name, Holder: noted, Unsure: died(noted)}
		}
		return nil, err
	}
	lock := &Lock{file}
	// The lock is held with or without its note, which may fail on a full disk.
	_ = lock.Note(holder)
	return lock, nil
}

// Holder returns who holds a lock, and false if nobody does.
func (d Dir) Holder(name string) (holder engine.Holder, held bool, err error) {
	file, err := d.openLock(name)
	if errors.Is(err, engine.ErrNotFound) {
		return holder, false, nil
	}
	if err != nil {
		return holder, false, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer file.Close()
		return readHolder(file), true, nil
	}
	return holder, false, errors.Join(err, unlock(file))
}

// AwaitRelease returns when nobody holds the lock, or ctx is done.
func (d Dir) AwaitRelease(ctx context.Context, name string) error {
	file, err := d.openLock(name)
	if err != nil {
		return err
	}
	released := make(chan error, 1)
	go func() {
		released <- errors.Join(flock(file, unix.LOCK_SH), unlock(file))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-released:
		return err
	}
}

// WithFolder calls do with exclusive access to the folder: no other process, and no other call of this one, is in a
// WithFolder of it. It waits for others, so do has to be quick.
func WithFolder(folder string, do func() error) (err error) {
	file, err := os.Open(folder)
	if err != nil {
		return err
	}
	if err := flock(file, unix.LOCK_EX); err != nil {
		return errors.Join(err, file.Close())
	}
	defer func() { err = errors.Join(err, unlock(file)) }()
	return do()
}

// flock takes a lock on a file, and waits for it.
func flock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Release releases the lock.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), unlock(l.file))
}

// unlock releases a lock and closes its file. Closing the file is not enough: a process that is being started at that
// moment has it open too, and would hold the lock a little longer.
func unlock(file *os.File) error {
	return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
}

// Note replaces the note about the holder.
func (l *Lock) Note(holder engine.Holder) error {
	data, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	// Overwritten before it is truncated, which takes no space if there was a note before.
	if _, err := l.file.WriteAt(data, 0); err != nil {
		return err
	}
	return l.file.Truncate(int64(len(data)))
}

// openLock opens a lock's file. It does not create the folder: a cluster that is gone has no locks.
func (d Dir) openLock(name string) (*os.File, error) {
	file, err := os.OpenFile(d.Path(locks, strings.ReplaceAll(name, " ", "-")+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if os.IsNotExist(err) {
		return nil, engine.ErrNotFound
	}
	return file, err
}

// died reports whether a holder has died. If its lock is held all the same, the present holder has not written its own
// note yet, or the noted one is of another container.
func died(noted engine.Holder) bool {
	return noted.Process != 0 && errors.Is(unix.Kill(noted.Process, 0), unix.ESRCH)
}

// readHolder returns the note in a lock. It is empty if the holder has not written it yet.
func readHolder(file *os.File) engine.Holder {
	var holder engine.Holder
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<16))
	if err != nil || json.Unmarshal(data, &holder) != nil {
		holder.Who = "someone"
	}
	return holder
}
