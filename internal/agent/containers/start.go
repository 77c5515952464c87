//go:build linux

package containers

import (
	"context"
	"errors"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/docker/docker/api/types/container"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// startPatience is how long a container may take to start on a busy host.
const startPatience = 2 * time.Minute

// Create creates the container of an instance without starting it.
func (e *Engine) Create(ctx context.Context, spec domain.MemberSpec, at Place) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	config, host := render(spec, at)
	_, err := e.client.ContainerCreate(ctx, config, host, nil, nil, Name(spec.Cluster, spec.Name, at.Instance))
	if cerrdefs.IsNotFound(err) {
		return &RefusedError{Code: refusedCode, Reason: fmt.Sprintf("image %q not found on this host", spec.Image)}
	}
	return e.explain(err)
}

// Start starts a container that was created. If the command is to blame, the error has the exit code for that.
func (e *Engine) Start(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	err := e.explain(e.client.ContainerStart(ctx, name, container.StartOptions{}))
	if refused, is := errors.AsType[*RefusedError](err); is {
		if found, failed := e.Inspect(ctx, name); failed == nil && (found.ExitCode == 126 || found.ExitCode == 127) {
			refused.Code = found.ExitCode
		}
	}
	return err
}

// Signal sends a signal to the first process of a container; if the container has ended, it does nothing.
func (e *Engine) Signal(ctx context.Context, name, signal string) error {
	return e.ask(ctx, func(ctx context.Context) error {
		err := e.client.ContainerKill(ctx, name, signal)
		if cerrdefs.IsConflict(err) {
			return nil // it is not running
		}
		return err
	})
}

// noticing is how often, and noticed at which interval, the Engine is asked whether it has caught up with its runtime.
const (
	noticing = 40
	noticed  = 50 * time.Millisecond
)

// Pause halts all processes of a container; it is no error if they are halted already.
func (e *Engine) Pause(ctx context.Context, name string) error {
	return e.halt(ctx, name, true, e.client.ContainerPause)
}

// Continue resumes the processes of a container; it is no error if they are running already.
func (e *Engine) Continue(ctx context.Context, name string) error {
	return e.halt(ctx, name, false, e.client.ContainerUnpause)
}

// halt halts or resumes the processes of a container. An Engine lags behind its runtime: it may still show a container
// as running that its runtime has halted, or the reverse, and the runtime then refuses to do it again. On a busy host,
// the runtime may also fail to freeze a container.
func (e *Engine) halt(
	ctx context.Context, name string, halted bool, change func(context.Context, string) error,
) error {
	return e.ask(ctx, func(ctx context.Context) error {
		found, err := e.client.ContainerInspect(ctx, name)
		if err != nil || found.State.Paused == halted {
			return err
		}
		err = unlessConflict(change(ctx, name))
		for asked := 0; err != nil && asked < noticing; asked++ {
			if found, unseen := e.client.ContainerInspect(ctx, name); unseen != nil || found.State.Paused == halted {
				return unseen
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(noticed):
			}
			err = unlessConflict(change(ctx, name))
		}
		return err
	})
}

func unlessConflict(err error) error {
	if cerrdefs.IsConflict(err) {
		return nil
	}
	return err
}

// Remove kills and removes a container, with its anonymous volumes.
func (e *Engine) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	err := e.client.ContainerRemove(ctx, name, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err = e.explain(unlessConflict(err)); errors.Is(err, ErrGone) { // removed by somebody else
		return nil
	}
	return err
}

// RemoveAll removes all containers of a cluster.
func (e *Engine) RemoveAll(ctx context.Context, cluster string) error {
	all, err := e.List(ctx, cluster)
	for _, c := range all {
		err = errors.Join(err, e.Remove(ctx, c.Name))
	}
	return err
}
