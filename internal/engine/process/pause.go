//go:build linux

package process

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// haltLook is how soon it is looked again whether a member that is halted has started further processes meanwhile.
const haltLook = 5 * time.Millisecond

// Pause halts all processes of members. What one of them starts at that very moment is halted, too.
func (e *Engine) Pause(ctx context.Context, names []string) error {
	halted := map[int]bool{}
	for {
		found, err := e.signal(ctx, names, unix.SIGSTOP, halted)
		if err != nil || found == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(haltLook):
		}
	}
}

// Continue has members that are halted go on.
func (e *Engine) Continue(ctx context.Context, names []string) error {
	_, err := e.signal(ctx, names, unix.SIGCONT, map[int]bool{})
	return err
}

// signal sends a signal to the processes of members that were not sent it yet, and returns how many those are.
func (e *Engine) signal(ctx context.Context, names []string, signal unix.Signal, sent map[int]bool) (found int, err error) {
	observed, err := e.Observe(ctx, "")
	if err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	instances, err := proctree.Scan()
	if err != nil {
		return 0, err
	}
	for _, o := range observed {
		if !wanted[o.Name] || o.Instance == "" {
			continue
		}
		for _, p := range instances[o.Instance] {
			if sent[p.PID] {
				continue
			}
			if err := proctree.Signal(p, signal); err != nil && !errors.Is(err, proctree.ErrGone) {
				return found, err
			}
			sent[p.PID] = true
			found++
		}
	}
	return found, nil
}
