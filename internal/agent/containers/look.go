//go:build linux

package containers

import (
	"context"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Container is the container of a member's instance.
type Container struct {
	Name, Member, Instance string
	// Running is true from its start until its end, even while it is paused; Ended is true after that.
	Running, Paused, Ended bool
	// PID is the ID of its first process while it runs.
	PID      int
	ExitCode int
	// FinishedAt is when it ended.
	FinishedAt time.Time
	// OutOfMemory is true if one of its processes was killed for lack of memory.
	OutOfMemory bool
	// StopSignal is the signal that asks it to stop; empty for SIGTERM.
	StopSignal string
	// Health is the state of its health check; empty if it has none.
	Health Health
	// Said is the latest output of the health check.
	Said string
	// Trouble is why it could not be started, in the Engine's words.
	Trouble string
}

// Health is the state of a health check.
type Health string

// The health states.
const (
	Starting  = Health(container.Starting)
	Healthy   = Health(container.Healthy)
	Unhealthy = Health(container.Unhealthy)
)

// Inspect returns the current state of a container.
func (e *Engine) Inspect(ctx context.Context, name string) (found Container, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		c, err := e.client.ContainerInspect(ctx, name)
		if err != nil {
			return err
		}
		found = Container{
			Name: name, Member: c.Config.Labels[domain.LabelMember], Instance: c.Config.Labels[domain.LabelInstance],
			Running: c.State.Running, PID: c.State.Pid, Paused: c.State.Paused, ExitCode: c.State.ExitCode,
			OutOfMemory: c.State.OOMKilled,
			StopSignal:  c.Config.StopSignal, Trouble: c.State.Error,
		}
		// Engines report a container that could not be started in different states, and it has an exit code too.
		started, err := time.Parse(time.RFC3339Nano, c.State.StartedAt)
		found.Ended = !found.Running && err == nil && !started.IsZero()
		if found.Ended {
			if found.FinishedAt, err = time.Parse(time.RFC3339Nano, c.State.FinishedAt); err != nil {
				return err
			}
		}
		if h := c.State.Health; h != nil && h.Status != container.NoHealthcheck {
			found.Health = Health(h.Status)
			if len(h.Log) > 0 {
				found.Said = strings.TrimSpace(h.Log[len(h.Log)-1].Output)
			}
		}
		return nil
	})
	return found, err
}

// List returns the containers of a cluster by name, with only the fields that Docker's list has.
func (e *Engine) List(ctx context.Context, cluster string) (map[string]Container, error) {
	all := map[string]Container{}
	err := e.ask(ctx, func(ctx context.Context) error {
		listed, err := e.client.ContainerList(ctx, container.ListOptions{All: true, Filters: ours(cluster)})
		for _, c := range listed {
			name := ""
			if len(c.Names) > 0 {
				name = strings.TrimPrefix(c.Names[0], "/")
			}
			all[name] = Container{
				Name: name, Member: c.Labels[domain.LabelMember], Instance: c.Labels[domain.LabelInstance],
				Running: c.State == container.StateRunning || c.State == container.StatePaused,
			}
		}
		return err
	})
	return all, err
}

// ours selects the containers of a cluster that this host's supervisor started.
func ours(cluster string) filters.Args {
	return filters.NewArgs(filters.Arg("label", domain.LabelCluster+"="+cluster),
		filters.Arg("label", domain.LabelInstance))
}

// Watch calls changed with the name of each container of a cluster that changes, until the connection breaks or ctx is
// done. It calls watching once it is subscribed.
func (e *Engine) Watch(ctx context.Context, cluster string, watching func() error, changed func(name string)) error {
	// Ping first, so that a missing Engine is reported at once.
	if err := e.ask(ctx, func(ctx context.Context) error { _, err := e.client.Ping(ctx); return err }); err != nil {
		return err
	}
	some := ours(cluster)
	some.Add("type", string(events.ContainerEventType))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, broken := e.client.Events(ctx, events.ListOptions{Filters: some})
	if err := watching(); err != nil {
		return err
	}
	for {
		select {
		case message := <-messages:
			changed(message.Actor.Attributes["name"])
		case err := <-broken:
			return e.explain(err)
		}
	}
}
