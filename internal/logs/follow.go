package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	// lastLines is how long logs that can't be read are tried again once the group has ended.
	lastLines = time.Minute
	// settling is how long the run of a plan may be missing once the plan has been applied.
	settling = 10 * time.Second
)

// errOtherRun means that the group was not applied with the triggers of the plan.
var errOtherRun = errors.New("it was applied with other triggers than the plan's")

// follower writes the logs of members of a group.
type follower struct {
	options
	target
	engine engine.Engine
	out    io.Writer
	// warnings is where what fails without ending the command is written.
	warnings io.Writer
	// begun is set once the group was found; places are how far the members' logs have been written.
	begun  bool
	places map[string]engine.LogPlace
	// appliedAt is when the plan was first seen to have been applied.
	appliedAt time.Time
	// endedAt is when the group was first seen to have ended. last is set for the last look.
	endedAt time.Time
	last    bool
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
		return false, errOtherRun
	}
	f.begun = true
	if f.triggers != nil && s.endless() {
		return true, fmt.Errorf("group %s %s", f.group, endless)
	}
	ended, verdict := s.verdict()
	if ended && f.endedAt.IsZero() {
		f.endedAt = time.Now()
	}
	err = f.write(ctx, s, ended || !f.follow)
	if unread, is := errors.AsType[*unreadError](err); is && ended && f.follow &&
		(f.last || !reconcile.Passes(unread) || time.Since(f.endedAt) > lastLines) {
		f.warn("%v", unread)
		err = nil
	}
	if err != nil {
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

// warn writes a warning.
func (f *follower) warn(format string, args ...any) {
	_, _ = io.WriteString(f.warnings, printable.Line("logs: "+fmt.Sprintf(format, args...))+"\n")
}

// write writes what members have written since the last time. It writes the logs that can be read even if others fail.
func (f *follower) write(ctx context.Context, s foundGroup, rest bool) error {
	chosen, err := s.chosen(f.options)
	if err != nil {
		return err
	}
	present := map[string]domain.Observed{}
	for _, o := range reconcile.Present(s.Decision, s.observed) {
		present[o.Name] = o
	}
	var unread []error
	for _, name := range chosen {
		place, seen := f.places[name]
		if o, there := present[name]; there && !seen {
			place = engine.LogPlace{Run: o.Run}
		} else if !there && !seen {
			continue // not in this run yet
		}
		place.Rest = rest
		prefix := ""
		if len(chosen) > 1 {
			prefix = name + " | "
		}
		err := f.writeMember(ctx, name, prefix, place)
		if _, gone := errors.AsType[*writeError](err); gone {
			return err
		}
		if err != nil {
			unread = append(unread, fmt.Errorf("member %s: %w", name, err))
		}
	}
	if len(unread) > 0 {
		return &unreadError{errors.Join(unread...)}
	}
	return nil
}

// writeMember writes the log of a member from a place on.
func (f *follower) writeMember(ctx context.Context, name, prefix string, place engine.LogPlace) error {
	for more := true; more; {
		part, err := f.engine.Follow(ctx, name, place)
		if errors.Is(err, engine.ErrNotFound) {
			return nil // starting, or gone
		}
		if err != nil {
			return err
		}
		for _, line := range part.Lines {
			if _, err := io.WriteString(f.out, prefix+printable.Line(line)+"\n"); err != nil {
				return &writeError{err}
			}
		}
		place.Mark, more = part.Next, part.More
		f.places[name] = place
	}
	return nil
}

// unreadError means that logs of members could not be read.
type unreadError struct{ error }

// Unwrap returns the reasons.
func (e *unreadError) Unwrap() error { return e.error }

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
		f.noteApplied()
		if events == nil {
			events, _ = f.engine.Watch(watched) // without events, the clock will do
		}
		ended, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return f.interrupted(ctx)
		case ended:
			return err
		case f.awaits(err) && f.appliedBefore(start.Add(-settling)):
			return f.misplaced(err)
		case err == nil, f.awaits(err):
			trouble = nil
		case !f.passes(err):
			return err
		case trouble == nil, refused(err) && !refused(trouble):
			trouble, since = err, start
			f.warn("trying again: %v", err)
		case time.Since(since) <= engine.OutagePatience:
		case f.triggers != nil && !f.begun && f.appliedAt.IsZero() && !refused(err):
			// The apply may still create the hosts.
			trouble = nil
		default:
			return fmt.Errorf("failing for %s: %w", engine.OutagePatience, err)
		}
		engine.WaitPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, start.Add(interval)); errors.Is(err, engine.ErrEventsLost) {
			events = nil
		}
	}
}

// awaits reports whether an error means that a plan has not been applied yet: group and cluster may be missing.
func (f *follower) awaits(err error) bool {
	return f.triggers != nil && !f.begun && (errors.Is(err, engine.ErrNotFound) || errors.Is(err, errOtherRun))
}

// noteApplied remembers when the file that stands for an applied plan was first seen.
func (f *follower) noteApplied() {
	if f.applied == "" || !f.appliedAt.IsZero() {
		return
	}
	if _, err := os.Stat(f.applied); err == nil {
		f.appliedAt = time.Now()
	}
}

// appliedBefore reports whether the plan had been applied before a moment.
func (f *follower) appliedBefore(moment time.Time) bool {
	return !f.appliedAt.IsZero() && f.appliedAt.Before(moment)
}

// misplaced returns the error for a run that is missing although its plan has been applied: the provider may have been
// configured to look elsewhere, which no plan shows.
func (f *follower) misplaced(cause error) error {
	dir := f.engine.Traits().StateDir
	place := cmp.Or(f.target.cluster.Endpoint, dir, "the default endpoint")
	advice := "If the provider sets ssh.user, put it into the cluster's endpoint, such as ssh://ops@gpu1"
	if place == dir {
		advice = "If the provider sets state_dir, set TRAINYARD_STATE_DIR to the same folder"
	}
	return fmt.Errorf("the plan has been applied, but its run of group %s is not in cluster %s (engine %s, %s): %s. %s",
		f.group, f.target.cluster.Name, f.target.cluster.Engine, place, cause.Error(), advice)
}

// refused reports whether an error means that a host answers, but can't be logged in to.
func refused(err error) bool { return errors.Is(err, engine.ErrRefused) }

// passes reports whether an error may pass soon.
func (f *follower) passes(err error) bool {
	_, gone := errors.AsType[*writeError](err)
	return !gone && reconcile.Passes(err)
}

// interrupted looks a last time, in case the group has ended meanwhile.
func (f *follower) interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer stop()
	f.last = true
	ended, err := f.look(ctx)
	switch {
	case ended:
		return err
	case f.begun:
		return fmt.Errorf("group %s is still running: %w", f.group, cause)
	}
	return fmt.Errorf("group %s has not been applied yet: %w", f.group, cause)
}
