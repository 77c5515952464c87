package sshclient

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Run runs a command in the user's shell on the host, once and without input, and returns its standard output. More
// than [bounded.Answer] of it is an error, and so is an exit status but 0, which wraps a [ssh.ExitError].
//
// Errors quote the last line of standard error, and not the command, which may hold secrets. A command that goes on
// when the context ends is left to the host.
func (c *Client) Run(ctx context.Context, command string) (stdout []byte, err error) {
	stdout, err = c.run(ctx, command)
	return stdout, At(c.host.String(), err)
}

func (c *Client) run(ctx context.Context, command string) ([]byte, error) {
	var session *ssh.Session
	release, err := c.use(ctx, func(ctx context.Context, client *ssh.Client) (err error) {
		session, err = promptly(ctx, client.NewSession, func(late *ssh.Session) { _ = late.Close() })
		return err
	})
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
		return nil, Failed(nil, "the SSH server opens no session; check MaxSessions in sshd_config: %s", refused.Message)
	}
	if err != nil {
		return nil, err
	}
	defer release()
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	return promptly(ctx, func() ([]byte, error) { return output(session, command) }, func([]byte) {})
}

// promptly returns what do returns or, as soon as the context ends, its cause. What do returns after that is tooLate's.
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

// output runs a command in a session, which it closes, and returns what the command writes to standard output.
func output(session *ssh.Session, command string) ([]byte, error) {
	// A command that goes on after too much output would wait for a reader forever. One that has ended has closed it.
	defer func() { _ = session.Close() }()
	complaint := &bounded.Tail{Most: bounded.Complaint}
	session.Stderr = complaint
	pipe, err := session.StdoutPipe()
	if err == nil {
		err = session.Start(command)
	}
	if err != nil {
		// The error would quote the command.
		return nil, Failed(nil, "the SSH server has not started the command; check that it lets this user run commands")
	}
	stdout, err := bounded.ReadAll(pipe, bounded.Answer)
	if err != nil {
		return nil, &Failure{Text: fmt.Sprintf("the command printed %s", err), Cause: err}
	}
	err = session.Wait()
	ended, ok := errors.AsType[*ssh.ExitError](err)
	switch {
	case ok:
		f := &Failure{Text: fmt.Sprintf("the command ended with status %d", ended.ExitStatus()), Cause: err}
		if last := complaint.LastLine(); last != "" {
			f.Text += ": " + last
		}
		return nil, f
	case err != nil:
		return nil, Failed(nil, "the SSH connection broke while the command ran: %s", err)
	}
	return stdout, nil
}
