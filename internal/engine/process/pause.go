//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// haltLook is how soon Pause checks again for processes that a member has started meanwhile.
const haltLook = 5 * time.Millisecond

// Pause stops all processes of members, including those that are started at that very moment.
func (e *Engine) Pause(ctx context.Context, names []string) error {
	names, err := e.onContainers(names,
		func(docker *containers.Engine, name string) error { return docker.Pause(ctx, name) })
	if err != nil {
		return err
	}
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

// Continue resumes paused members.
func (e *Engine) Continue(ctx context.Context, names []string) error {
	names, err := e.onContainers(names,
		func(docker *containers.Engine, name string) error { return docker.Continue(ctx, name) })
	if err != nil {
		return err
	}
	_, err = e.signal(ctx, names, unix.SIGCONT, map[int]bool{})
	return err
}

// signal sends a signal to those processes of members that have not received it yet, and returns their number.
func (e *Engine) signal(
	ctx context.Context, names []string, signal unix.Signal, sent map[int]bool,
) (found int, err error) {
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

// onContainers calls do for the members' running containers, and returns the members that are not containers.
func (e *Engine) onContainers(
	names []string, do func(docker *containers.Engine, name string) error,
) (others []string, err error) {
	docker, err := containers.Open(containers.Socket)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		state, err := statedir.Read[statedir.State](e.dir.Document(statedir.States, name))
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		if !state.Container {
			others = append(others, name)
			continue
		}
		if state.State != domain.StateRunning {
			continue
		}
		err = do(docker, containers.Name(e.dir.Cluster, name, state.Instance))
		if err != nil && !errors.Is(err, containers.ErrGone) {
			return nil, fmt.Errorf("member %q: %w", name, err)
		}
	}
	return others, nil
}
