package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

const (
	// commandsAtOnce bounds how many commands run at once.
	commandsAtOnce = 8
	// lingering is how long processes that a command has started may keep its output open after it has ended.
	lingering = time.Second
)

// askCommand requests a run of a command.
func (r *reading) askCommand(command []string) *sharedRequest[[]byte] {
	type key struct{ command string }
	return share(r, key{strings.Join(command, "\x00")}, r.semaphore("commands", commandsAtOnce),
		func(ctx context.Context) ([]byte, error) {
			return run(ctx, command, nil)
		})
}

// run runs a command with this standard input, and returns its standard output. Once ctx is done, the command is killed
// with all processes that it has started.
func run(ctx context.Context, command []string, input []byte) ([]byte, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	output, complaint := &bounded.Buffer{Most: bounded.Answer}, &bounded.Tail{Most: bounded.Complaint}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), output, complaint
	killWhole(c)
	c.WaitDelay = lingering
	err := c.Run()
	ended, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case output.Err() != nil:
		return nil, fmt.Errorf("its output has %w", output.Err())
	case failed:
		if last := complaint.LastLine(); last != "" {
			return nil, fmt.Errorf("failed with %s: %s", ended.ProcessState, last)
		}
		return nil, fmt.Errorf("failed with %s", ended.ProcessState)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return output.Bytes(), nil // it ended with 0, whatever it left running
	}
	return nil, fmt.Errorf("running it failed: %w", err)
}
