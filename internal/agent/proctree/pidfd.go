//go:build linux

package proctree

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to a process, or returns [ErrGone] where it has exited: never will the signal reach
// another process that got the same id.
func Signal(p Process, sig unix.Signal) error {
	fd, err := open(p.PID, p.StartTime)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		// A kernel without pidfds: the id could pass to another process between the look and the signal.
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

// Watcher tells when a process exits, be it a child of this process or not. It holds a file descriptor, which
// Go's network poller waits for, and no thread.
type Watcher struct {
	file *os.File
	done chan struct{}
}

// Watch starts to watch the process with this id and start time, or returns [ErrGone] where it has exited. It
// needs Linux 5.3, and returns [errors.ErrUnsupported] before that.
func Watch(pid int, startTime uint64) (*Watcher, error) {
	fd, err := open(pid, startTime)
	if err != nil {
		return nil, err
	}
	// The poller takes a descriptor that doesn't block.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watching process %d: %w", pid, err)
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	conn, err := file.SyscallConn()
	if err == nil {
		err = file.SetDeadline(time.Time{}) // fails where the poller refused the descriptor
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

// Done returns the channel that is closed when the process has exited. Close does not close it.
func (w *Watcher) Done() <-chan struct{} {
	return w.done
}

// Close ends the watch. It may be called several times.
func (w *Watcher) Close() {
	_ = w.file.Close() // its one error is that it was closed before
}

// exited tells, without waiting, whether the process of a pidfd has exited.
func exited(fd uintptr) bool {
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(set, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// open returns a pidfd of the process with this id and start time, [ErrGone] where it has exited, or
// [errors.ErrUnsupported].
func open(pid int, startTime uint64) (int, error) {
	if pid <= 0 {
		return -1, fmt.Errorf("%d is no process id: it must be positive", pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
	// The kernel answers EINVAL or ENOENT for an id that lives on as that of a session or of a thread.
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return -1, fmt.Errorf("process %d: %w", pid, ErrGone)
	// Container runtimes whose filter is older than the call refuse it with EPERM.
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return -1, fmt.Errorf("pidfd_open: %w (it needs Linux 5.3, and a container runtime that allows it)", errors.ErrUnsupported)
	default:
		return -1, fmt.Errorf("opening process %d: %w", pid, err)
	}
	// The descriptor holds on to the process, so a look after opening it is not too early.
	if err := verify(pid, startTime); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// verify returns [ErrGone] unless the process with this id has this start time.
func verify(pid int, startTime uint64) error {
	p, err := Lookup(pid)
	if err != nil {
		return err
	}
	if p.StartTime != startTime {
		return fmt.Errorf("process %d, which started at tick %d and not at %d, is another one: %w", pid, p.StartTime, startTime, ErrGone)
	}
	return nil
}
