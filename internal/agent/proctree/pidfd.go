//go:build linux

package proctree

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to a process, or returns [ErrGone] if it has exited. On a kernel with pidfds, the signal never
// reaches another process that got the same ID.
func Signal(p Process, sig unix.Signal) error {
	fd, err := open(p.PID, p.StartTime)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		// Without pidfds, the ID could be reused between the check and the signal.
		if err := verify(p.PID, p.StartTime); err != nil {
			return err
		}
		err = unix.Kill(p.PID, sig)
	case err != nil:
		return err
	default:
		defer func() { _ = unix.Close(fd) }()
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", p.PID, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("sending %s to process %d: %w", unix.SignalName(sig), p.PID, err)
	}
	return nil
}

// Watcher reports when a process exits, even if it is not a child of this process. It uses a file descriptor in Go's
// network poller, not a thread.
type Watcher struct {
	file *os.File
	done chan struct{}
}

// Watch starts watching the process with this ID and start time, or returns [ErrGone] if it has exited. Before Linux
// 5.3 it returns [errors.ErrUnsupported].
func Watch(pid int, startTime uint64) (*Watcher, error) {
	fd, err := open(pid, startTime)
	if err != nil {
		return nil, err
	}
	// The poller requires a non-blocking descriptor.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watching process %d: %w", pid, err)
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	conn, err := file.SyscallConn()
	if err == nil {
		err = file.SetDeadline(time.Time{}) // fails if the poller rejected the descriptor
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("watching process %d: %w", pid, err)
	}
	w := &Watcher{file: file, done: make(chan struct{})}
	go func() {
		defer w.Close()
		if conn.Read(exited) == nil {
			close(w.done)
		}
	}()
	return w, nil
}

// Done returns a channel that is closed when the process has exited. Close does not close it.
func (w *Watcher) Done() <-chan struct{} {
	return w.done
}

// Close ends the watch. It may be called repeatedly.
func (w *Watcher) Close() {
	_ = w.file.Close() // it can only fail because it is already closed
}

// exited reports, without waiting, whether the process of a pidfd has exited.
func exited(fd uintptr) bool {
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(set, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// open returns a pidfd for the process with this ID and start time, [ErrGone] if it has exited, or
// [errors.ErrUnsupported].
func open(pid int, startTime uint64) (int, error) {
	if pid <= 0 {
		return -1, fmt.Errorf("invalid process ID %d: it must be positive", pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
	// The kernel returns EINVAL or ENOENT for an ID that is still in use by a session or a thread.
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return -1, fmt.Errorf("process %d: %w", pid, ErrGone)
	// Container runtimes with a seccomp filter older than the call reject it with EPERM.
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return -1, fmt.Errorf("pidfd_open: %w (this requires Linux 5.3 and a container runtime that allows it)",
			errors.ErrUnsupported)
	default:
		return -1, fmt.Errorf("opening process %d: %w", pid, err)
	}
	// The descriptor pins the process, so checking after opening it is safe.
	if err := verify(pid, startTime); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// verify returns [ErrGone] unless the process with this ID has this start time.
func verify(pid int, startTime uint64) error {
	p, err := Lookup(pid)
	if err != nil {
		return err
	}
	if p.StartTime != startTime {
		return fmt.Errorf("process %d started at tick %d, not %d, so it is a different one: %w", pid, p.StartTime,
			startTime, ErrGone)
	}
	return nil
}
