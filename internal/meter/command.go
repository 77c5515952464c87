package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// commandsAtOnce bounds how many commands run at once.
	commandsAtOnce = 8
	// maxComplaint is how many bytes of the end of a command's standard error are kept.
	maxComplaint = 4 << 10
	// lingering is how long what a command has started may keep its output open after it has ended.
	lingering = time.Second
)

// askCommand notes that a command has to be run.
func (r *reading) askCommand(command []string) *errand[[]byte] {
	type key struct{ command string }
	return share(r, key{strings.Join(command, "\x00")}, r.lane("commands", commandsAtOnce), func(ctx context.Context) ([]byte, error) {
		return run(ctx, command, nil)
	})
}

// run runs a command with its standard input, and returns its standard output. When ctx is done, it is killed, with all that it has started.
func run(ctx context.Context, command []string, input []byte) ([]byte, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	output, complaint := &head{most: maxAnswer}, &tail{most: maxComplaint}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), output, complaint
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = lingering
	err := c.Run()
	ended, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case output.full:
		return nil, fmt.Errorf("it prints more than %d bytes", maxAnswer)
	case failed:
		if last := complaint.lastLine(); last != "" {
			return nil, fmt.Errorf("it fails with %s: %s", ended.ProcessState, last)
		}
		return nil, fmt.Errorf("it fails with %s", ended.ProcessState)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return output.kept, nil // it has ended well, whatever it has left running
	}
	return nil, fmt.Errorf("it can't be run: %w", err)
}

// head keeps the beginning of what is written, and refuses what is too much.
type head struct {
	most int
	kept []byte
	full bool
}

func (h *head) Write(text []byte) (int, error) {
	if len(h.kept)+len(text) > h.most {
		h.full = true
		return 0, errors.New("too much")
	}
	h.kept = append(h.kept, text...)
	return len(text), nil
}

// tail keeps the end of what is written.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.kept = append(t.kept, text...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(text), nil
}

// lastLine is the last line that is not empty, as far as it is kept.
func (t *tail) lastLine() string {
	lines := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return strings.TrimSpace(strings.ToValidUTF8(lines[len(lines)-1], "\uFFFD"))
}
