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
	// Stop are members to be stopped, for Reason.
	Stop   []string
	Reason domain.StopReason
	// Restart is true where the whole group has to be restarted, and Resume where that, or another count of a role, was
	// decided, but not carried out by whoever decided it.
	Restart, Resume bool
	// Move are members whose hosts are lost, to be placed anew.
	Move []string
	// Next is when to look again without any event; the zero time where only events matter.
	Next time.Time
}

// Keep returns what a group needs at a moment: the rest stopped once it is completed or failed, all stopped
// at its deadline, members moved away from hosts that are lost, or a restart as a whole.
func Keep(d Decision, observed []domain.Observed, lost map[string]string, now time.Time) Upkeep {
	if d.Document.Scaling {
		return Upkeep{Resume: true} // whatever has become of the group: then there are the members that there should be
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

// restartUnfinished reports whether a group that is restarted as a whole has members that are not: whoever restarts it
// died before it came to them.
func restartUnfinished(d Decision, observed []domain.Observed) bool {
	restarted := d.Document.GroupRestarts > 0 || d.Document.StartedAt != nil
	return restarted && slices.ContainsFunc(observed, func(o domain.Observed) bool {
		return 0 < o.Run && o.Run < d.Document.MinRun // run 0 is that of a member that an apply has yet to start
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

// runsOf returns in which run each of some members was seen.
func runsOf(names []string, observed []domain.Observed) map[string]int {
	runs := make(map[string]int, len(names))
	for _, o := range observed {
		if slices.Contains(names, o.Name) {
			runs[o.Name] = o.Run
		}
	}
	return runs
}

// clocksApart is how far clocks of hosts are allowed to be apart. An end that is later than that is told by a clock
// that is wrong.
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

// startOf returns when the group started, over all restarts since the last rerun; zero where it has not.
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

// Due is a group that needs something at a moment, without any further change.
type Due struct {
	Group string
	Due   time.Time
}

// Pending returns the groups of the cluster that need something now or later. It takes a constant number of engine
// calls. Groups that can't be observed are left out, and reported in the error.
func (r Reconciler) Pending(ctx context.Context, now time.Time) ([]Due, error) {
	scene, unread := r.Scene(ctx)
	var pending []Due
	for _, name := range slices.Sorted(maps.Keys(scene.Members)) {
		keep := Keep(Current(scene.traits, scene.hosts, scene.Groups[name]), scene.Members[name], scene.lost, now)
		switch {
		case keep.Restart || keep.Resume || len(keep.Stop) > 0 || len(keep.Move) > 0:
			pending = append(pending, Due{name, now})
		case !keep.Next.IsZero():
			pending = append(pending, Due{name, keep.Next})
		}
	}
	return pending, unread
}

// observeAll observes the members of all groups, by group: at once, or, where that fails, group by group, so that one
// that can't be observed is no harm to the others. It is left out then, with an error.
func (r Reconciler) observeAll(ctx context.Context, groups map[string]domain.GroupDocument) (map[string][]domain.Observed, error) {
	members := make(map[string][]domain.Observed, len(groups))
	all, err := r.Engine.Observe(ctx, "")
	if err == nil {
		for name := range groups {
			members[name] = nil
		}
		for _, o := range all {
			if _, found := groups[o.Group]; found { // or else it is of a sweep
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

// lockedRetry is when to look again at a group that an apply holds, or a change of a count.
const lockedRetry = 500 * time.Millisecond

// Keep does for a group what it needs now, and returns when to look again without any event. Where somebody else
// holds the group's lock nothing is done until it is free. Members that have lost their hosts and can't be placed
// elsewhere are an [*UnplacedError].
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

// act does for a group what it needs now, and returns when to look again without any event. The group's lock is held.
func (r Reconciler) act(ctx context.Context, group Group, lost map[string]string) (next time.Time, err error) {
	keep := Keep(group.Decision, group.Observed, lost, time.Now())
	switch {
	case group.Document.Scaling:
		return r.resumeScaling(ctx, group)
	case len(keep.Stop) > 0:
		r.say(ctx, group.Document.Spec.Name, "members stop", slog.Any("members", keep.Stop), slog.String("reason", string(keep.Reason)))
		return keep.Next, r.Engine.Stop(ctx, runsOf(keep.Stop, group.Observed), keep.Reason)
	case keep.Restart:
		r.say(ctx, group.Document.Spec.Name, "group restarts")
		group.Document.Restart(startOf(group.Document, group.Observed))
		if group.Document, err = engine.Put(ctx, r.Engine, group.Document); err != nil {
			return time.Time{}, fmt.Errorf("group %q could not be restarted: %w", group.Document.Spec.Name, err)
		}
	case len(keep.Move) > 0:
		r.say(ctx, group.Document.Spec.Name, "members move", slog.Any("members", keep.Move))
		if group.Decision, err = r.move(ctx, group, keep.Move, lost); err != nil {
			return time.Now().Add(unplacedRetry), err
		}
	case !keep.Resume:
		return keep.Next, nil
	}
	return keep.Next, r.converge(ctx, group.Decision, group.Observed)
}
