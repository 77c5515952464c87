package sshclient

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// Exec starts a command in the user's shell on the host, and returns a connection to it. The context applies to the
// start only.
func (c *Client) Exec(ctx context.Context, command string) (*Stream, error) {
	s, err := c.exec(ctx, command)
	return s, At(c.host.String(), err)
}

func (c *Client) exec(ctx context.Context, command string) (*Stream, error) {
	session, release, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := Within(ctx, c.limit)
	defer cancel()
	running, err := promptly(limited, func() (*started, error) { return start(session, command) }, func(*started) {})
	if err != nil {
		go func() { // this waits for a connection that may be stuck
			_ = session.Close()
			release()
		}()
		return nil, err
	}
	return newStream(running, c.host.String(), release), nil
}

// Stream is a command running on a host, as a connection: writes go to its standard input, reads come from its standard
// output. At the end of the output, Read fails with [io.EOF] if the command succeeded. Otherwise the error wraps a
// [ssh.ExitError], and has the exit status and the last line of standard error.
//
// Deadlines work as for any connection. Data may still be buffered here when Write returns.
type Stream struct {
	// Our ends of two pipes; they provide the deadlines that an SSH session lacks.
	stdin, stdout net.Conn

	address string // of the host
	session *ssh.Session
	release func()

	fed    chan struct{} // closed when no more input is passed on
	ended  chan struct{} // closed when err is set
	err    error
	closed atomic.Bool
	close  func()
}

const (
	// settling is how long an end waits for what usually follows shortly, such as the exit status after the output.
	settling = time.Second
	// inputPatience is how long a command may take nothing of the last input before it counts as stuck.
	inputPatience = 15 * time.Second
)

func newStream(running *started, address string, release func()) *Stream {
	s := &Stream{
		address: address, session: running.session, release: release,
		fed: make(chan struct{}), ended: make(chan struct{}),
	}
	s.close = sync.OnceFunc(s.end)
	var stdin, stdout net.Conn
	s.stdin, stdin = net.Pipe()
	s.stdout, stdout = net.Pipe()
	go func() {
		s.err = At(address, running.wait())
		close(s.ended)
		_ = stdin.Close() // nobody reads it
	}()
	go func() {
		_, err := io.Copy(running.stdin, stdin)
		_ = running.stdin.Close()
		close(s.fed)
		if err != nil {
			within(settling, s.ended)
		}
		_ = stdin.Close()
	}()
	go func() {
		_, _ = io.Copy(stdout, running.stdout)
		_, _ = io.Copy(io.Discard, running.stdout) // after Close: a command that can't write may not read, either
		// The wait is bounded, as a command may close its output and keep running.
		within(settling, s.ended)
		_ = stdout.Close()
	}()
	return s
}

// within waits for something, and reports whether it happened in time.
func within(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Read reads from the command's standard output.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.stdout.Read(p)
	return n, s.explain(err)
}

// Write writes to the command's standard input.
func (s *Stream) Write(p []byte) (int, error) {
	select {
	case <-s.ended: // the pipe may not be closed yet
		return 0, s.explain(io.ErrClosedPipe)
	default:
	}
	n, err := s.stdin.Write(p)
	return n, s.explain(err)
}

// explain translates an error of a pipe.
func (s *Stream) explain(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	if s.closed.Load() {
		return net.ErrClosed
	}
	select {
	case <-s.ended:
		if s.err != nil {
			return s.err
		}
	default:
	}
	return err
}

// CloseWrite ends the input: the command sees its end.
func (s *Stream) CloseWrite() error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	return s.stdin.Close()
}

// Close ends the session: the command sees the end of its input, and can write no more. Close waits until the host has
// what was written, unless the command is stuck. If the command keeps running all the same, it is left alone.
func (s *Stream) Close() error {
	s.close()
	return nil
}

func (s *Stream) end() {
	s.closed.Store(true)
	// Closing a pipe never fails.
	_ = s.stdin.Close()
	_ = s.stdout.Close()
	taken := within(inputPatience, s.fed)
	over := make(chan struct{})
	go func() { // this waits for a connection that may be stuck
		defer close(over)
		_ = s.session.Close()
		if taken {
			// What the host has, but the command has not read yet, is lost if the connection ends now.
			within(inputPatience, s.ended)
		}
		s.release()
	}()
	within(settling, over)
}

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(at time.Time) error {
	return errors.Join(s.SetReadDeadline(at), s.SetWriteDeadline(at))
}

// SetReadDeadline sets when Read fails with [os.ErrDeadlineExceeded].
func (s *Stream) SetReadDeadline(at time.Time) error { return s.deadline(s.stdout.SetReadDeadline, at) }

// SetWriteDeadline sets when Write fails with [os.ErrDeadlineExceeded].
func (s *Stream) SetWriteDeadline(at time.Time) error {
	return s.deadline(s.stdin.SetWriteDeadline, at)
}

// deadline sets a deadline. A direction that has ended needs none.
func (s *Stream) deadline(set func(time.Time) error, at time.Time) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	if err := set(at); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// LocalAddr returns a placeholder, as this end has no address.
func (s *Stream) LocalAddr() net.Addr { return execAddr("local") }

// RemoteAddr returns the address of the host.
func (s *Stream) RemoteAddr() net.Addr { return execAddr(s.address) }

// execAddr is the address of one end of a command's connection.
type execAddr string

// Network returns "ssh".
func (execAddr) Network() string { return "ssh" }

func (a execAddr) String() string { return string(a) }
