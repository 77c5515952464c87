package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Run runs a command in the user's shell on the host, once and without input, and returns its standard output. More
// than [bounded.Answer] of output is an error, and so is a non-zero exit status, which wraps a [ssh.ExitError].
//
// Errors quote the last line of standard error, but not the command, which may contain secrets. A command that is still
// running when the context ends is left alone.
func (c *Client) Run(ctx context.Context, command string) (stdout []byte, err error) {
	return c.RunInput(ctx, command, strings.NewReader(""))
}

// RunInput is [Client.Run] with standard input, which the command need not read to the end. To the command, the end of
// stdin looks like the end of the context or the connection, or a failed read: the content has to show whether it is
// complete. If reading stdin fails, the error wraps that of the reader.
func (c *Client) RunInput(ctx context.Context, command string, stdin io.Reader) (stdout []byte, err error) {
	stdout, err = c.run(ctx, command, stdin)
	return stdout, At(c.host.String(), err)
}

func (c *Client) run(ctx context.Context, command string, stdin io.Reader) ([]byte, error) {
	session, release, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	return promptly(ctx, func() ([]byte, error) { return output(session, command, stdin) }, func([]byte) {})
}

// session opens a session for a command. The caller closes it and releases its connection.
func (c *Client) session(ctx context.Context) (session *ssh.Session, release func(), err error) {
	release, err = c.use(ctx, func(ctx context.Context, client *ssh.Client) (err error) {
		session, err = promptly(ctx, client.NewSession, func(late *ssh.Session) { _ = late.Close() })
		return err
	})
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
		err = Failed(nil, "the SSH server refused a session; check MaxSessions in sshd_config: %s", refused.Message)
	}
	return session, release, err
}

// promptly returns the result of do or, as soon as the context ends, its cause. A later result of do is passed to
// tooLate.
func promptly[T any](ctx context.Context, do func() (T, error), tooLate func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		value, err := do()
		select {
		case done <- result{value, err}:
		case <-ctx.Done():
			if err == nil {
				tooLate(value)
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}

// output runs a command in a session, which it closes, and returns its standard output.
func output(session *ssh.Session, command string, stdin io.Reader) ([]byte, error) {
	// Closing ends a command with too much output, which would wait for a reader forever. If the command has ended, the
	// session is closed already.
	defer func() { _ = session.Close() }()
	running, err := start(session, command)
	if err != nil {
		return nil, err
	}
	unread := make(chan error, 1)
	go func() {
		source := &input{from: stdin}
		// if a command has ended or a connection is broken, the errors below say more
		_, _ = io.Copy(running.stdin, source)
		if source.err != nil {
			unread <- source.err
			_ = session.Close()
			return
		}
		_ = running.stdin.Close()
	}()
	stdout, err := bounded.ReadAll(running.stdout, bounded.Answer)
	if err != nil {
		return nil, &Failure{Text: fmt.Sprintf("the command printed %s", err), Cause: err}
	}
	err = running.wait()
	select {
	case cause := <-unread:
		return nil, &Failure{Text: fmt.Sprintf("reading the input for the command: %s", cause), Cause: cause}
	default:
	}
	if err != nil {
		return nil, err
	}
	return stdout, nil
}

// input is a reader that records its error.
type input struct {
	from io.Reader
	err  error
}

func (i *input) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	if !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// started is a command running in a session.
type started struct {
	session   *ssh.Session
	stdin     io.WriteCloser
	stdout    io.Reader
	complaint *bounded.Tail // the end of its standard error
}

// start starts a command. Its output has to be read.
func start(session *ssh.Session, command string) (*started, error) {
	s := &started{session: session, complaint: &bounded.Tail{Most: bounded.Complaint}}
	session.Stderr = s.complaint
	var failed [3]error
	s.stdin, failed[0] = session.StdinPipe()
	s.stdout, failed[1] = session.StdoutPipe()
	failed[2] = session.Start(command)
	if errors.Join(failed[:]...) != nil {
		// The error would quote the command.
		return nil, Failed(nil, "the SSH server did not start the command; check that it lets this user run commands")
	}
	return s, nil
}

// wait returns how the command ended; nil for success.
func (s *started) wait() error {
	err := s.session.Wait()
	ended, ok := errors.AsType[*ssh.ExitError](err)
	switch {
	case ok:
		f := &Failure{Text: fmt.Sprintf("the command exited with status %d", ended.ExitStatus()), Cause: err}
		if last := s.complaint.LastLine(); last != "" {
			f.Text += ": " + last
		}
		return f
	case err != nil:
		return Failed(nil, "the SSH connection broke while the command ran: %s", err)
	}
	return nil
}
