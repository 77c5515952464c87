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
	// interval is how soon logs are read again that nothing tells of.
	interval = time.Second
	// lastLook bounds the last look of a follower that was interrupted.
	lastLook = 10 * time.Second
)

// follower writes the logs of members of a group.
type follower struct {
	options
	target
	engine engine.Engine
	out    io.Writer
	// begun tells that the group was found, and places are how far the logs of its members were written.
	begun  bool
	places map[string]engine.LogPlace
}

// look finds the group and writes what is new. The rest of a log that has no line feed comes with the end.
func (f *follower) look(ctx context.Context) (ended bool, err error) {
	s, err := f.find(ctx)
	if err != nil {
		return false, err
	}
	if !s.isOf(f.triggers) {
		if f.begun {
			return true, fmt.Errorf("group %s has been applied with other triggers: another run took its place", f.group)
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
func (f *follower) find(ctx context.Context) (s scene, err error) {
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

// write writes what members wrote since the last time.
func (f *follower) write(ctx context.Context, s scene, rest bool) error {
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
			continue // it has not come to this run yet
		}
		place.Rest = rest
		for more := true; more; {
			part, err := f.engine.Follow(ctx, name, place)
			if errors.Is(err, engine.ErrNotFound) {
				break // it is being started, or is gone
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

// writeError is returned where nobody reads any more.
type writeError struct{ error }

// run looks again and again until the group has ended, and once more where it is interrupted.
func (f *follower) run(ctx context.Context) error {
	watched, stop := context.WithCancel(ctx)
	defer stop()
	var events <-chan struct{}
	var trouble error
	var since time.Time
	for {
		start := time.Now()
		if events == nil {
			events, _ = f.engine.Watch(watched) // without, the clock will do
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
			return fmt.Errorf("for %s: %w", engine.OutagePatience, err)
		}
		engine.WaitPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, start.Add(interval)); errors.Is(err, engine.ErrEventsLost) {
			events = nil
		}
	}
}

// passes reports whether an error may be over soon. Before its apply, there need be neither group nor cluster.
func (f *follower) passes(err error) bool {
	if _, is := errors.AsType[*writeError](err); is {
		return false
	}
	awaited := f.triggers != nil && !f.begun
	return reconcile.Passes(err) || awaited && errors.Is(err, engine.ErrNotFound)
}

// interrupted looks for the last time, so that the end of a group that ended meanwhile is told.
func (f *follower) interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer stop()
	ended, err := f.look(ctx)
	switch {
	case ended:
		return err
	case f.begun:
		return fmt.Errorf("group %s has not ended, and goes on: %w", f.group, cause)
	}
	return fmt.Errorf("group %s has not been applied yet: %w", f.group, cause)
}
