package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// logTail is how many of a failed member's last log lines an error shows.
	logTail = 20
	// lookAtLatest is how soon a wait looks again without an event.
	lookAtLatest = 10 * time.Second
	// outageRetry is how soon to retry an engine that can't be reached.
	outageRetry = 500 * time.Millisecond
)

// MemberError means that a member prevents what was waited for. The member and its logs are still there.
type MemberError struct {
	Member domain.Observed
	// Cause is the member's own error, or that it ended although its group never completes.
	Cause string
	// Log are the member's last log lines.
	Log []string
}

// Error names the member, its host, its error and its last log lines.
func (e *MemberError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "member %s", e.Member.Name)
	if e.Member.Host != "" {
		fmt.Fprintf(&b, " on host %s", e.Member.Host)
	}
	fmt.Fprintf(&b, ": %s", e.Cause)
	if len(e.Log) > 0 {
		fmt.Fprintf(&b, "\n\nIts last log lines:\n  %s", strings.Join(e.Log, "\n  "))
	}
	return b.String()
}

// await waits until the group runs or has completed, by phase, and returns the decision as stored by then. Completion
// also satisfies a wait for running; a wait for completion includes that the rest is stopped. A member that failed for
// good is a [*MemberError]. The observed members are passed through regarded first.
func (r Reconciler) await(
	ctx context.Context, d Decision, phase domain.Phase, regarded func(Decision, []domain.Observed) []domain.Observed,
) (Decision, error) {
	var last domain.Progress
	var trouble string
	err := r.watch(ctx, d.Document.Spec.Name, func(observed []domain.Observed) (_ bool, next time.Time, err error) {
		if d, err = r.refresh(ctx, d); err != nil {
			return false, next, err
		}
		observed = regarded(d, observed)
		var lost map[string]string
		if phase == domain.PhaseRunning {
			if lost, err = r.lostHostsOf(ctx, Group{Decision: d, Observed: observed}); err != nil {
				return false, next, err
			}
			observed = inPlace(observed, lost)
		}
		last, trouble = Progress(d, observed), waitsFor(observed)
		switch last.Phase {
		case domain.PhaseCompleted:
			return phase == domain.PhaseRunning || settled(d, observed), next, nil
		case phase:
			return true, next, nil
		}
		if o, found := hopeless(d, observed, phase, last.Phase); found {
			return false, next, r.memberError(ctx, o)
		}
		if last.Phase == domain.PhaseFailed {
			return false, next, fmt.Errorf("group %q failed: %s", d.Document.Spec.Name, last.Reason)
		}
		if phase == domain.PhaseRunning {
			// This apply holds the group's lock, so the controller can't do it.
			next, err = r.act(ctx, Group{Decision: d, Observed: observed, Progress: last}, lost)
			if unplaced, is := errors.AsType[*UnplacedError](err); is {
				trouble, err = unplaced.Error(), nil // the host may come back
			}
			if locked, is := errors.AsType[*engine.LockedError](err); is {
				trouble, err = locked.Error(), nil // not the lock of this apply, which has begun
			}
		}
		return false, next, err
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if away, is := errors.AsType[*outageError](err); is {
			trouble = away.last.Error()
		}
		state := cmp.Or(string(last.Phase), "not observed")
		if last.Reason != "" {
			state += " (" + last.Reason + ")"
		}
		if trouble != "" {
			state += " (" + trouble + ")"
		}
		err = fmt.Errorf("group %q is %s, not %s yet, and continues: %w", d.Document.Spec.Name, state, phase,
			context.Cause(ctx))
	}
	return d, err
}

// asTheyAre returns the members unchanged.
func asTheyAre(_ Decision, observed []domain.Observed) []domain.Observed { return observed }

// waitsFor returns why a pending member could not be started, if the reason may pass.
func waitsFor(observed []domain.Observed) string {
	for _, o := range observed {
		if o.State == domain.StatePending && o.LastError != "" {
			return o.Name + ": " + o.LastError
		}
	}
	return ""
}

// hopeless returns a member that keeps the group from getting from its present phase to the wanted one.
func hopeless(d Decision, observed []domain.Observed, wanted, present domain.Phase) (domain.Observed, bool) {
	if present != domain.PhaseFailed && wanted != domain.PhaseRunning {
		return domain.Observed{}, false
	}
	never := d.Rule().When == domain.WhenNever
	for _, o := range regard(d, observed) {
		if o.Run < d.Document.MinRun {
			continue
		}
		if never && o.State == domain.StateCompleted {
			o.LastError = `exited with code 0, but members of a group with completion.when = "never" must not end`
			return o, true
		}
		// An apply fails at once if a member can't be started. The controller keeps retrying it by its restart rule.
		if o.State == domain.StateFailed || o.State == domain.StateRestarting && o.Unstarted {
			return o, true
		}
	}
	return domain.Observed{}, false
}

// settled reports whether the rest of a completed group has been stopped.
func settled(d Decision, observed []domain.Observed) bool {
	return len(stopRest(d.Rule(), observed, domain.StopCompleted).Stop) == 0
}

// refresh returns the decision as stored now: the controller may restart the group as a whole, and another apply may
// change a group that is waited for.
func (r Reconciler) refresh(ctx context.Context, d Decision) (Decision, error) {
	name := d.Document.Spec.Name
	doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, name)
	if err != nil {
		return d, fmt.Errorf("reading group %q while waiting for it: %w", name, err)
	}
	if doc.Revision == d.Document.Revision {
		return d, nil
	}
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return d, fmt.Errorf("reading cluster %q while waiting for group %q: %w", doc.Spec.Cluster, name, err)
	}
	return Current(r.Engine.Traits(), cluster.Spec.Hosts, doc), nil
}

func (r Reconciler) memberError(ctx context.Context, o domain.Observed) error {
	failure := &MemberError{Member: o, Cause: o.LastError}
	log, err := r.Engine.Logs(ctx, o.Name, engine.LogOptions{Tail: logTail})
	if err != nil {
		log = []string{fmt.Sprintf("(its log could not be read: %v)", err)}
	}
	failure.Log = log
	return failure
}

// look inspects the members of a group. next is when to look again at the latest; zero if only events matter.
type look func([]domain.Observed) (seen bool, next time.Time, err error)

// watch calls look now, after each change of the group, and at the times that look returns, until it has seen what it
// looks for. It tolerates an unreachable engine for a while, as training goes on without one.
func (r Reconciler) watch(ctx context.Context, group string, look look) error {
	var since time.Time // when the engine first failed to answer
	var outage error    // its last error; nil while it answers
	for {
		answered, err := r.watchUntilLost(ctx, group, look)
		if answered {
			outage = nil
		}
		if ctx.Err() != nil && Passes(err) && !errors.Is(err, ctx.Err()) {
			outage, err = err, ctx.Err() // both happened at once
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && outage != nil:
			return &outageError{err, outage}
		case ctx.Err() != nil || !Passes(err):
			return err
		case outage == nil:
			since = time.Now()
			r.say(ctx, group, "engine not answering; still waiting", slog.String("error", err.Error()))
		case time.Since(since) > engine.OutagePatience:
			return fmt.Errorf("for %s: %w", engine.OutagePatience, err)
		}
		outage = err
		if err := pause(ctx, outageRetry); err != nil {
			return &outageError{err, outage}
		}
	}
}

// outageError means that a wait ended while the engine could not be reached.
type outageError struct{ ended, last error }

// Error names both.
func (e *outageError) Error() string { return fmt.Sprintf("%v, while %v", e.ended, e.last) }

// Unwrap returns what ended the wait.
func (e *outageError) Unwrap() error { return e.ended }

// Passes reports whether an error may pass soon, such as a manager restart or the election of a leader.
func Passes(err error) bool {
	for _, passing := range []error{
		engine.ErrUnreachable, engine.ErrUnwell, engine.ErrNotFormed, engine.ErrEventsLost,
	} {
		if errors.Is(err, passing) {
			return !errors.Is(err, engine.ErrNotFound)
		}
	}
	return false
}

// watchUntilLost is one attempt to watch; answered reports whether the engine answered a complete look.
func (r Reconciler) watchUntilLost(ctx context.Context, group string, look look) (answered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := r.Engine.Watch(ctx)
	if err != nil {
		return false, err
	}
	for {
		start := time.Now()
		observed, err := r.Engine.Observe(ctx, group)
		if err != nil {
			return answered, err
		}
		seen, next, err := look(observed)
		if seen || err != nil {
			return answered, err
		}
		answered = true
		engine.WaitPace.Rest(ctx, start)
		// Without an event, too: looking is what restarts a dead controller or agent.
		if latest := time.Now().Add(lookAtLatest); next.IsZero() || next.After(latest) {
			next = latest
		}
		if err := engine.Await(ctx, events, next); err != nil {
			return answered, err
		}
	}
}
