package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// interval is how often logs are read without an event.
	interval = time.Second
	// lastLook bounds the last look of an interrupted follower.
	lastLook = 10 * time.Second
)

// follower writes the logs of members of a group.
type follower struct {
	options
	target
	engine engine.Engine
	out    io.Writer
	// begun is set once the group was found; places are how far the members' logs have been written.
	begun  bool
	places map[string]engine.LogPlace
}

// look finds the group and writes what is new. A last line without a newline is written once the group has ended.
func (f *follower) look(ctx context.Context) (ended bool, err error) {
	s, err := f.find(ctx)
	if err != nil {
		return false, err
	}
	if !s.isOf(f.triggers) {
		if f.begun {
			return true, fmt.Errorf("group %s was applied with other triggers: another run replaced this one", f.group)
		}
		return false, nil
	}
	f.begun = true
	ended, verdict := s.verdict()
	if err := f.write(ctx, s, ended || !f.follow); err != nil {
		return false, err
	}
	return ended, verdict
}

// find reads the group.
func (f *follower) find(ctx context.Context) (s foundGroup, err error) {
	e := f.engine.Snapshot()
	cluster, err := engine.Cluster(ctx, e)
	if err != nil {
		return s, err
	}
	document, err := engine.Get[domain.GroupDocument](ctx, e, f.group)
	if err != nil {
		return s, err
	}
	s.Decision = reconcile.Current(e.Traits(), cluster.Spec.Hosts, document)
	s.observed, err = e.Observe(ctx, f.group)
	return s, err
}

// write writes what members have written since the last time.
func (f *follower) write(ctx context.Context, s foundGroup, rest bool) error {
	chosen, err := s.chosen(f.options)
	if err != nil {
		return err
	}
	present := map[string]domain.Observed{}
	for _, o := range reconcile.Present(s.Decision, s.observed) {
		present[o.Name] = o
	}
	for _, name := range chosen {
		place, seen := f.places[name]
		if o, there := present[name]; there && !seen {
			place = engine.LogPlace{Run: o.Run}
		} else if !there && !seen {
			continue // not in this run yet
		}
		place.Rest = rest
		for more := true; more; {
			part, err := f.engine.Follow(ctx, name, place)
			if errors.Is(err, engine.ErrNotFound) {
				break // starting, or gone
			}
			if err != nil {
				return err
			}
			prefix := ""
			if len(chosen) > 1 {
				prefix = name + " | "
			}
			for _, line := range part.Lines {
				if _, err := io.WriteString(f.out, prefix+printable.Line(line)+"\n"); err != nil {
					return &writeError{err}
				}
			}
			place.Mark, more = part.Next, part.More
			f.places[name] = place
		}
	}
	return nil
}

// writeError means that the reader of the output is gone.
type writeError struct{ error }

// run looks until the group has ended, and once more if it is interrupted.
func (f *follower) run(ctx context.Context) error {
	watched, stop := context.WithCancel(ctx)
	defer stop()
	var events <-chan struct{}
	var trouble error
	var since time.Time
	for {
		start := time.Now()
		if events == nil {
			events, _ = f.engine.Watch(watched) // without events, the clock will do
		}
		ended, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return f.interrupted(ctx)
		case ended:
			return err
		case err == nil:
			trouble = nil
		case !f.passes(err):
			return err
		case trouble == nil:
			trouble, since = err, start
		case f.begun && time.Since(since) > engine.OutagePatience:
			return fmt.Errorf("failing for %s: %w", engine.OutagePatience, err)
		}
		engine.WaitPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, start.Add(interval)); errors.Is(err, engine.ErrEventsLost) {
			events = nil
		}
	}
}

// passes reports whether an error may pass soon. Before the apply of a plan, group and cluster may be missing.
func (f *follower) passes(err error) bool {
	if _, is := errors.AsType[*writeError](err); is {
		return false
	}
	awaited := f.triggers != nil && !f.begun
	return reconcile.Passes(err) || awaited && errors.Is(err, engine.ErrNotFound)
}

// interrupted looks a last time, in case the group has ended meanwhile.
func (f *follower) interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer stop()
	ended, err := f.look(ctx)
	switch {
	case ended:
		return err
	case f.begun:
		return fmt.Errorf("group %s is still running: %w", f.group, cause)
	}
	return fmt.Errorf("group %s has not been applied yet: %w", f.group, cause)
}
