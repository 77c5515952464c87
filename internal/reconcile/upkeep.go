package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Upkeep is what a group needs between two applies.
type Upkeep struct {
	// Stop are members to stop, for Reason.
	Stop   []string
	Reason domain.StopReason
	// Restart means that the whole group has to restart. Resume means that a restart, a move or a scaling was decided,
	// but not carried out by whoever decided it.
	Restart, Resume bool
	// Move are members to be placed elsewhere, as their hosts are lost.
	Move []string
	// Next is when to look again without an event; zero if only events matter.
	Next time.Time
}

// Keep returns what a group needs now: stop the rest once it is completed or failed, stop all at its deadline, move
// members off lost hosts, or restart it as a whole.
func Keep(d Decision, observed []domain.Observed, lost map[string]string, now time.Time) Upkeep {
	if d.Document.Scaling {
		return Upkeep{Resume: true} // finish it first, so that the members are those of the document
	}
	rule := d.Rule()
	switch progress := Progress(d, observed); progress.Phase {
	case domain.PhaseCompleted:
		return stopRest(rule, observed, domain.StopCompleted)
	case domain.PhaseFailed:
		return stopRest(rule, observed, domain.StopFailed)
	}
	stranded, moving := onLostHosts(d, observed, lost)
	if moving || restartUnfinished(d, observed) {
		return Upkeep{Resume: true}
	}
	keep := Upkeep{Move: stranded}
	if due, ok := groupRestartDue(d.Document, observed, now); ok && len(stranded) == 0 {
		if !due.After(now) {
			return Upkeep{Restart: true}
		}
		keep.Next = due
	}
	if deadline, ok := deadlineOf(rule, d.Document, observed); ok {
		rule.StopRest = true
		switch stop := stopRest(rule, observed, domain.StopDeadline); {
		case !deadline.After(now) && len(stop.Stop) > 0:
			return stop
		case deadline.After(now) && (keep.Next.IsZero() || deadline.Before(keep.Next)):
			keep.Next = deadline
		}
	}
	return keep
}

// restartUnfinished reports whether a restart of the group as a whole was interrupted before it reached all members.
func restartUnfinished(d Decision, observed []domain.Observed) bool {
	restarted := d.Document.GroupRestarts > 0 || d.Document.StartedAt != nil
	return restarted && slices.ContainsFunc(observed, func(o domain.Observed) bool {
		return 0 < o.Run && o.Run < d.Document.MinRun // run 0: not started yet, an apply will
	})
}

func stopRest(rule domain.CompletionRule, observed []domain.Observed, reason domain.StopReason) Upkeep {
	keep := Upkeep{Reason: reason}
	if !rule.StopRest {
		return keep
	}
	for _, o := range observed {
		if !o.State.Ended() {
			keep.Stop = append(keep.Stop, o.Name)
		}
	}
	return keep
}

// runsOf returns the observed runs of these members.
func runsOf(names []string, observed []domain.Observed) map[string]int {
	runs := make(map[string]int, len(names))
	for _, o := range observed {
		if slices.Contains(names, o.Name) {
			runs[o.Name] = o.Run
		}
	}
	return runs
}

// clocksApart is how far apart the clocks of hosts may be. An end time further in the future comes from a wrong clock.
const clocksApart = time.Minute

func groupRestartDue(doc domain.GroupDocument, observed []domain.Observed, now time.Time) (time.Time, bool) {
	for _, o := range observed {
		verdict, judged := judgeForGroup(doc, o)
		if judged && verdict.State == domain.StateRestarting {
			var ended time.Time
			if o.FinishedAt != nil && o.FinishedAt.Sub(now) < clocksApart {
				ended = *o.FinishedAt
			}
			return ended.Add(verdict.Delay), true
		}
	}
	return time.Time{}, false
}

func deadlineOf(rule domain.CompletionRule, doc domain.GroupDocument, observed []domain.Observed) (time.Time, bool) {
	started := startOf(doc, observed)
	if rule.Deadline == 0 || started.IsZero() {
		return time.Time{}, false
	}
	return started.Add(time.Duration(rule.Deadline)), true
}

// startOf returns when the group started, before any restarts since the last rerun; zero if it has not.
func startOf(doc domain.GroupDocument, observed []domain.Observed) time.Time {
	var started time.Time
	if doc.StartedAt != nil {
		started = *doc.StartedAt
	}
	for _, o := range observed {
		if o.RunStartedAt != nil && o.Run >= doc.MinRun && (started.IsZero() || o.RunStartedAt.Before(started)) {
			started = *o.RunStartedAt
		}
	}
	return started
}

// Due is a group that needs something at a certain time, even if nothing else changes.
type Due struct {
	Group string
	Due   time.Time
}

// Pending returns the groups of the cluster that need something now or later. It takes a constant number of engine
// calls. Groups that can't be observed are left out, and reported in the error.
func (r Reconciler) Pending(ctx context.Context, now time.Time) ([]Due, error) {
	observation, unread := r.Observation(ctx)
	var pending []Due
	for _, name := range slices.Sorted(maps.Keys(observation.Members)) {
		keep := Keep(Current(observation.traits, observation.hosts, observation.Groups[name]),
			observation.Members[name], observation.lost, now)
		switch {
		case keep.Restart || keep.Resume || len(keep.Stop) > 0 || len(keep.Move) > 0:
			pending = append(pending, Due{name, now})
		case !keep.Next.IsZero():
			pending = append(pending, Due{name, keep.Next})
		}
	}
	return pending, unread
}

// observeAll observes the members of all groups, by group. If observing them at once fails, it observes them group by
// group, and leaves out those that fail with an error.
func (r Reconciler) observeAll(
	ctx context.Context, groups map[string]domain.GroupDocument,
) (map[string][]domain.Observed, error) {
	members := make(map[string][]domain.Observed, len(groups))
	all, err := r.Engine.Observe(ctx, "")
	if err == nil {
		for name := range groups {
			members[name] = nil
		}
		for _, o := range all {
			if _, found := groups[o.Group]; found { // else it is of a sweep
				members[o.Group] = append(members[o.Group], o)
			}
		}
		return members, nil
	}
	var unread error
	for name := range groups {
		observed, err := r.Engine.Observe(ctx, name)
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("group %q: %w", name, err))
			continue
		}
		members[name] = observed
	}
	return members, unread
}

// lockedRetry is how soon to look again at a group that an apply or a scaling holds.
const lockedRetry = 500 * time.Millisecond

// Keep does what a group needs now, and returns when to look again without an event. If somebody else holds the group's
// lock, it does nothing. Members that have lost their hosts and can't be placed elsewhere are an [*UnplacedError].
func (r Reconciler) Keep(ctx context.Context, name string) (next time.Time, err error) {
	release, err := r.Engine.Lock(ctx, GroupLock(name), r.holder("upkeep of group "+name))
	if _, locked := errors.AsType[*engine.LockedError](err); locked {
		return time.Now().Add(lockedRetry), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer func() { err = errors.Join(err, release()) }()

	group, err := r.Read(ctx, name)
	if errors.Is(err, engine.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	lost, err := r.lostHostsOf(ctx, group)
	if err != nil {
		return time.Time{}, err
	}
	return r.act(ctx, group, lost)
}

// act does what a group needs now, and returns when to look again without an event. The caller holds the group's lock.
func (r Reconciler) act(ctx context.Context, group Group, lost map[string]string) (next time.Time, err error) {
	keep := Keep(group.Decision, group.Observed, lost, time.Now())
	switch {
	case group.Document.Scaling:
		return r.resumeScaling(ctx, group)
	case len(keep.Stop) > 0:
		r.say(ctx, group.Document.Spec.Name, "stopping members", slog.Any("members", keep.Stop),
			slog.String("reason", string(keep.Reason)))
		return keep.Next, r.Engine.Stop(ctx, runsOf(keep.Stop, group.Observed), keep.Reason)
	case keep.Restart:
		r.say(ctx, group.Document.Spec.Name, "restarting group")
		group.Document.Restart(startOf(group.Document, group.Observed))
		if group.Document, err = engine.Put(ctx, r.Engine, group.Document); err != nil {
			return time.Time{}, fmt.Errorf("restarting group %q: %w", group.Document.Spec.Name, err)
		}
	case len(keep.Move) > 0:
		r.say(ctx, group.Document.Spec.Name, "moving members", slog.Any("members", keep.Move))
		if group.Decision, err = r.move(ctx, group, keep.Move, lost); err != nil {
			return time.Now().Add(unplacedRetry), err
		}
	case !keep.Resume:
		return keep.Next, nil
	}
	if err := r.converge(ctx, group.Decision, group.Observed); err != nil {
		return keep.Next, err
	}
	_, err = r.release(ctx, group.Decision) // of an apply that has died
	return keep.Next, err
}
