package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

func TestRun(t *testing.T) {
	sshd.Isolate(t)
	full := strings.Repeat("x", bounded.Answer)
	for name, test := range map[string]struct {
		does   sshd.Command
		absent bool
		want   string
		status int
		parts  []string // of the error; nil for none
		lacks  string
	}{
		"its output":        {does: sshd.Command{Stdout: "16\n", Stderr: "a warning\n"}, want: "16\n"},
		"no output":         {},
		"as much as may be": {does: sshd.Command{Stdout: full}, want: full},
		"a byte too much": {
			does: sshd.Command{Stdout: full + "x"}, parts: []string{"the command printed more than 1048576 bytes"},
		},
		"far too much": {
			does:  sshd.Command{Stdout: strings.Repeat(full, 8)},
			parts: []string{"the command printed more than 1048576 bytes"},
		},
		"a status": {
			does: sshd.Command{Stdout: "sixteen\n", Status: 3}, status: 3,
			parts: []string{"the command exited with status 3"}, lacks: "sixteen",
		},
		"a complaint": {
			does: sshd.Command{Stderr: strings.Repeat("first\n", 1000) + "last\n\n", Status: 1}, status: 1,
			parts: []string{"exited with status 1: last"}, lacks: "first",
		},
		"no such command": {absent: true, status: 127, parts: []string{"exited with status 127: sh: ", "not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			const command = "TOKEN=hunter2 count"
			commands := map[string]sshd.Command{command: test.does}
			if test.absent {
				commands = nil
			}
			server := sshd.Start(t, sshd.Options{Commands: commands})
			client := openTo(t, server)
			output, err := client.Run(t.Context(), command)
			<-server.Ended
			if string(output) != test.want {
				t.Errorf("the output has %d bytes: %.20q, want %.20q", len(output), output, test.want)
			}
			if test.parts == nil {
				must(t, err)
				return
			}
			expect(t, err, nil, append(test.parts, client.host.String()+": ")...)
			if test.lacks != "" && strings.Contains(err.Error(), test.lacks) {
				t.Errorf("error has %q: %v", test.lacks, err)
			}
			ended, failed := errors.AsType[*ssh.ExitError](err)
			if failed != (test.status != 0) || failed && ended.ExitStatus() != test.status {
				t.Errorf("not the status %d: %v", test.status, err)
			}
			if _, many := errors.AsType[*bounded.Error](err); many == failed {
				t.Errorf("whether it is too much is %t: %v", many, err)
			}
		})
	}
}

// TestRunRefused: an error about something that a server refuses doesn't quote the command.
func TestRunRefused(t *testing.T) {
	sshd.Isolate(t)
	for part, options := range map[string]sshd.Options{
		"the SSH server refused a session":         {NoSessions: true},
		"the SSH server did not start the command": {Commands: map[string]sshd.Command{"hunter2": {Refused: true}}},
	} {
		server := sshd.Start(t, options)
		_, err := openTo(t, server).Run(t.Context(), "hunter2")
		expect(t, err, nil, server.Addr+": "+part)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error shows the command: %v", err)
		}
		<-server.Ended
	}
}

// TestRunInput: a command need not read all its input, and truncated input doesn't pass for complete input.
func TestRunInput(t *testing.T) {
	sshd.Isolate(t)
	long := strings.Repeat("0123456789", 1<<20)
	broken := errors.New("broken disk")
	count := func(command ssh.Channel) uint32 {
		n, _ := io.Copy(io.Discard, command)
		_, _ = fmt.Fprint(command, n)
		return 0
	}
	first := func(command ssh.Channel) uint32 {
		_, _ = io.CopyN(command, command, 4)
		return 0
	}
	for name, test := range map[string]struct {
		does  func(ssh.Channel) uint32
		input io.Reader
		want  string
		kind  error
		parts []string
	}{
		"all":         {does: count, input: strings.NewReader(long), want: "10485760"},
		"nothing":     {does: count, input: strings.NewReader(""), want: "0"},
		"a part":      {does: first, input: strings.NewReader(long), want: "0123"},
		"not its end": {does: first, input: io.MultiReader(strings.NewReader("0123"), endless{}), want: "0123"},
		"what breaks": {
			does: count, input: io.MultiReader(strings.NewReader("0123"), iotest.ErrReader(broken)), kind: broken,
			parts: []string{"reading the input for the command: broken disk"},
		},
		"an early error": {
			does: func(ssh.Channel) uint32 { return 28 }, input: strings.NewReader(long),
			parts: []string{"exited with status 28"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"upload": {Does: test.does}}})
			output, err := openTo(t, server).RunInput(t.Context(), "upload", test.input)
			<-server.Ended
			if string(output) != test.want {
				t.Errorf("the output is %.20q, want %.20q", output, test.want)
			}
			if test.parts == nil {
				must(t, err)
				return
			}
			expect(t, err, test.kind, append(test.parts, server.Addr+": ")...)
		})
	}
}

// endless is a reader without an end that returns no bytes.
type endless struct{}

func (endless) Read([]byte) (int, error) { select {} }

// TestRunEnds: a hanging command is abandoned when its context or its connection ends.
func TestRunEnds(t *testing.T) {
	sshd.Isolate(t)
	given := errors.New("given up")
	for name, test := range map[string]struct {
		end   func(context.CancelCauseFunc, *sshd.Server)
		kind  error
		parts []string
	}{
		"the context": {end: func(cancel context.CancelCauseFunc, _ *sshd.Server) { cancel(given) }, kind: given},
		"the connection": {
			end:   func(_ context.CancelCauseFunc, server *sshd.Server) { server.Drop() },
			parts: []string{"the SSH connection broke while the command ran"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			started := make(chan struct{})
			server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"wait": {Hangs: started}}})
			client := openTo(t, server)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-started
				test.end(cancel, server)
			}()
			_, err := client.Run(ctx, "wait")
			expect(t, err, test.kind, test.parts...)
			<-server.Ended
		})
	}
}

// TestPromptly: a function that ignores the context is not waited for, and its late result is not lost.
func TestPromptly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := errors.New("given up")
		ctx, cancel := context.WithCancelCause(t.Context())
		answer, late := make(chan string), ""
		do := func() (string, error) { return <-answer, nil }
		go cancel(given)
		if value, err := promptly(ctx, do, func(value string) { late = value }); value != "" || !errors.Is(err, given) {
			t.Errorf("got %q, %v", value, err)
		}
		answer <- "too late"
		synctest.Wait()
		if late != "too late" {
			t.Errorf("what came too late is %q", late)
		}
	})
}
