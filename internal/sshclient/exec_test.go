package sshclient

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/nettest"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// execute starts a command on a server that does only this.
func execute(t *testing.T, does func(ssh.Channel) uint32) (*Stream, *sshd.Server) {
	t.Helper()
	server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"relay": {Does: does}}})
	stream, err := openTo(t, server).Exec(t.Context(), "relay")
	must(t, err)
	t.Cleanup(func() { _ = stream.Close() })
	return stream, server
}

func copies(command ssh.Channel) uint32 {
	_, _ = io.Copy(command, command)
	return 0
}

func TestExec(t *testing.T) {
	sshd.Isolate(t)
	stream, server := execute(t, copies)
	var conn net.Conn = stream
	for _, text := range []string{"to and fro", strings.Repeat("0123456789", 1<<20)} {
		var writing sync.WaitGroup
		writing.Go(func() {
			if n, err := io.WriteString(conn, text); n != len(text) || err != nil {
				t.Errorf("%d of %d bytes are written: %v", n, len(text), err)
			}
		})
		received := make([]byte, len(text))
		if _, err := io.ReadFull(conn, received); err != nil || string(received) != text {
			t.Errorf("%.20q came back (%v)", received, err)
		}
		writing.Wait()
	}
	if !strings.Contains(server.Addr, conn.RemoteAddr().String()[len("127.0.0.1"):]) {
		t.Errorf("the address of the other end is %s", conn.RemoteAddr())
	}
	must(t, stream.CloseWrite())
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("after the end of the input, %q came (%v)", rest, err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("after the end of the input, writing says %v", err)
	}
	must(t, conn.SetDeadline(time.Now()))
	must(t, conn.Close())
	<-server.Ended
	must(t, conn.Close())
	_, read := conn.Read(nil)
	_, written := conn.Write(nil)
	for _, err := range []error{read, written, stream.CloseWrite(), conn.SetDeadline(time.Time{})} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("after it was closed, the error is %v", err)
		}
	}
}

// TestExecIsConn: the connection satisfies the tests for any net.Conn, above all for deadlines.
func TestExecIsConn(t *testing.T) {
	sshd.Isolate(t)
	nettest.TestConn(t, func() (ours, theirs net.Conn, stop func(), err error) {
		here, there := net.Pipe()
		stream, server := execute(t, func(command ssh.Channel) uint32 {
			go func() {
				_, _ = io.Copy(there, command)
				_ = there.Close()
			}()
			_, _ = io.Copy(command, there)
			return 0
		})
		return stream, here, func() {
			_ = here.Close()
			_ = stream.Close()
			<-server.Ended
		}, nil
	})
}

// TestExecEnds: the error at the end of the output says how the command ended.
func TestExecEnds(t *testing.T) {
	sshd.Isolate(t)
	for name, test := range map[string]struct {
		output, complaint string
		status            int
		drop              bool
		parts             []string
		lacks             string
	}{
		"well":          {output: "ready\n", complaint: "a warning\n"},
		"at once":       {},
		"with a status": {output: "ready\n", status: 3, parts: []string{"the command exited with status 3"}},
		"with a complaint": {
			complaint: strings.Repeat("first\n", 1000) + "sudo: a password is required\n", status: 1,
			parts: []string{"exited with status 1: sudo: a password is required"}, lacks: "first",
		},
		"without connection": {
			output: "ready\n", drop: true, parts: []string{"the SSH connection broke while the command ran"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var server *sshd.Server
			started := make(chan struct{})
			stream, server := execute(t, func(command ssh.Channel) uint32 {
				<-started
				_, _ = io.WriteString(command.Stderr(), test.complaint)
				_, _ = io.WriteString(command, test.output)
				if test.drop {
					server.Drop()
				}
				return uint32(test.status)
			})
			close(started)
			received, err := io.ReadAll(stream)
			if string(received) != test.output {
				t.Errorf("it said %q, want %q", received, test.output)
			}
			_, written := stream.Write([]byte("more"))
			if test.parts == nil {
				must(t, err)
				if !errors.Is(written, io.ErrClosedPipe) {
					t.Errorf("writing to what has ended says %v", written)
				}
				return
			}
			for _, err := range []error{err, written} {
				expect(t, err, nil, append(test.parts, server.Addr+": ")...)
				if test.lacks != "" && strings.Contains(err.Error(), test.lacks) {
					t.Errorf("error has %q: %v", test.lacks, err)
				}
				if ended, ok := errors.AsType[*ssh.ExitError](err); ok != (test.status > 0) ||
					ok && ended.ExitStatus() != test.status {
					t.Errorf("not the status %d: %v", test.status, err)
				}
			}
		})
	}
}

// TestExecHalf: a command may close its output and keep reading its input.
func TestExecHalf(t *testing.T) {
	sshd.Isolate(t)
	rest := make(chan string, 1)
	stream, _ := execute(t, func(command ssh.Channel) uint32 {
		_, _ = io.WriteString(command, "that is all")
		_ = command.CloseWrite()
		text, _ := io.ReadAll(command)
		rest <- string(text)
		return 0
	})
	if received, err := io.ReadAll(stream); err != nil || string(received) != "that is all" {
		t.Errorf("it said %q (%v)", received, err)
	}
	_, err := io.WriteString(stream, "go on")
	must(t, err)
	must(t, stream.Close())
	if got := <-rest; got != "go on" {
		t.Errorf("what was written last arrived as %q", got)
	}
}

// TestExecFails: an error about something that a server refuses doesn't quote the command.
func TestExecFails(t *testing.T) {
	sshd.Isolate(t)
	for part, options := range map[string]sshd.Options{
		"the SSH server refused a session":         {NoSessions: true},
		"the SSH server did not start the command": {Commands: map[string]sshd.Command{"hunter2": {Refused: true}}},
	} {
		server := sshd.Start(t, options)
		_, err := openTo(t, server).Exec(t.Context(), "hunter2")
		expect(t, err, nil, server.Addr+": "+part)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error shows the command: %v", err)
		}
		<-server.Ended
	}
	given := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(given)
	if _, err := openTo(t, sshd.Start(t, sshd.Options{})).Exec(ctx, "relay"); !errors.Is(err, given) {
		t.Errorf("the context's end is reported as %v", err)
	}
}

// TestExecOutlivesItsContext: the context applies to the start only.
func TestExecOutlivesItsContext(t *testing.T) {
	sshd.Isolate(t)
	server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"relay": {Does: copies}}})
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := openTo(t, server).Exec(ctx, "relay")
	must(t, err)
	cancel()
	_, err = io.WriteString(stream, "still here")
	must(t, err)
	must(t, stream.CloseWrite())
	if received, err := io.ReadAll(stream); err != nil || string(received) != "still here" {
		t.Errorf("%q came back (%v)", received, err)
	}
	must(t, stream.Close())
	<-server.Ended
}

// TestCutOff: closing a connection whose other side is gone, as the keepalive does, ends everything that it carries.
func TestCutOff(t *testing.T) {
	sshd.Isolate(t)
	for name, through := range map[string]bool{"directly": false, "through a jump host": true} {
		t.Run(name, func(t *testing.T) {
			server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"relay": {Does: copies}}})
			vanishes, credentials := server, server.Credentials(t)
			if through {
				vanishes = sshd.Start(t, sshd.Options{})
				credentials.JumpHost = "guard@" + vanishes.Addr
				credentials.KnownHostsText += vanishes.Known(t, sshd.Ed25519())
			}
			client := clientOf(t, server.Addr, credentials)
			stream, err := client.Exec(t.Context(), "relay")
			must(t, err)
			l, err := client.acquire(t.Context())
			must(t, err)
			vanishes.Cut()
			_ = l.client.Close()
			_, err = stream.Read(make([]byte, 1))
			expect(t, err, nil, server.Addr+": the SSH connection broke while the command ran")
			_ = l.client.Wait()
			must(t, stream.Close())
			client.release(l)
			<-server.Ended
		})
	}
}
