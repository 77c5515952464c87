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
	// logTail is the number of a failed member's last log lines that an error shows.
	logTail = 20
	// lookAtLatest is how soon a wait looks again without any event.
	lookAtLatest = 10 * time.Second
	// outageRetry is how soon an engine is asked again that can't be asked.
	outageRetry = 500 * time.Millisecond
)

// MemberError is returned where a member keeps its group from what was waited for. The member and its logs are
// still there.
type MemberError struct {
	Member domain.Observed
	// Cause is the member's own error, or the phase that the group is in instead.
	Cause string
	// Log are the last lines that the member wrote.
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

// await returns when the group runs or has completed, whichever phase is asked for, and returns the decision as it is
// by then; a group that should run may have completed already. A completed group is waited for until its rest is
// stopped, too. A member that failed for good ends the wait with a [*MemberError]. What is observed counts as regarded.
func (r Reconciler) await(ctx context.Context, d Decision, phase domain.Phase, regarded func(Decision, []domain.Observed) []domain.Observed) (Decision, error) {
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
			// The group's lock is held here, and so keeps the controller from doing it.
			next, err = r.act(ctx, Group{Decision: d, Observed: observed, Progress: last}, lost)
			if unplaced, is := errors.AsType[*UnplacedError](err); is {
				trouble, err = unplaced.Error(), nil // the host may come back
			}
		}
		return false, next, err
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if away, is := errors.AsType[*outageError](err); is {
			trouble = away.last.Error()
		}
		state := cmp.Or(string(last.Phase), "not seen")
		if last.Reason != "" {
			state += " (" + last.Reason + ")"
		}
		if trouble != "" {
			state += " (" + trouble + ")"
		}
		err = fmt.Errorf("group %q is %s, not %s yet, and goes on: %w", d.Document.Spec.Name, state, phase, context.Cause(ctx))
	}
	return d, err
}

// asTheyAre regards members as nothing else than they are.
func asTheyAre(_ Decision, observed []domain.Observed) []domain.Observed { return observed }

// waitsFor returns why a member that does not run yet could not be started, for reasons that may pass.
func waitsFor(observed []domain.Observed) string {
	for _, o := range observed {
		if o.State == domain.StatePending && o.LastError != "" {
			return o.Name + ": " + o.LastError
		}
	}
	return ""
}

// hopeless returns a member for which the group will not get into the phase that is waited for, from the one that it is
// in.
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
			o.LastError = "it has ended with exit code 0, and the members of a group whose completion is never should not"
			return o, true
		}
		// An apply fails at once if a member can't be started. The controller goes on retrying it, as its rule says.
		if o.State == domain.StateFailed || o.State == domain.StateRestarting && o.Unstarted {
			return o, true
		}
	}
	return domain.Observed{}, false
}

// settled reports whether nothing more is to come in a completed group: its rest has been stopped.
func settled(d Decision, observed []domain.Observed) bool {
	return len(stopRest(d.Rule(), observed, domain.StopCompleted).Stop) == 0
}

// refresh returns the decision as it is stored by now: the controller restarts a group as a whole, and another apply
// may change one whose completion is waited for.
func (r Reconciler) refresh(ctx context.Context, d Decision) (Decision, error) {
	name := d.Document.Spec.Name
	doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, name)
	if err != nil {
		return d, fmt.Errorf("group %q could not be read while waiting for it: %w", name, err)
	}
	if doc.Revision == d.Document.Revision {
		return d, nil
	}
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return d, fmt.Errorf("cluster %q could not be read while waiting for group %q: %w", doc.Spec.Cluster, name, err)
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

// look looks at the members of a group for something, and returns when to look again at the latest: the zero time where
// any event will do.
type look func([]domain.Observed) (seen bool, next time.Time, err error)

// watch observes a group, and again after each change and at the moments that look returns, until look tells that it
// has seen what it looks for. It outlasts that the engine can't be asked for a while: a training goes on without it.
func (r Reconciler) watch(ctx context.Context, group string, look look) error {
	var since time.Time // when the engine was first found not to answer
	var outage error    // why it did not answer last; nil while it does
	for {
		answered, err := r.watchUntilLost(ctx, group, look)
		if answered {
			outage = nil
		}
		if ctx.Err() != nil && Passes(err) && !errors.Is(err, ctx.Err()) {
			outage, err = err, ctx.Err() // both at one moment
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
			r.say(ctx, group, "the engine can't be asked, and the wait goes on", slog.String("error", err.Error()))
		case time.Since(since) > engine.OutagePatience:
			return fmt.Errorf("for %s: %w", engine.OutagePatience, err)
		}
		outage = err
		if err := pause(ctx, outageRetry); err != nil {
			return &outageError{err, outage}
		}
	}
}

// outageError is returned where a wait was ended while the engine could not be asked.
type outageError struct{ ended, last error }

// Error says both.
func (e *outageError) Error() string { return fmt.Sprintf("%v, while %v", e.ended, e.last) }

// Unwrap returns why the wait was ended.
func (e *outageError) Unwrap() error { return e.ended }

// Passes reports whether an error may be over soon: a manager restarts, or the managers choose another leader.
func Passes(err error) bool {
	for _, passing := range []error{engine.ErrUnreachable, engine.ErrUnwell, engine.ErrNotFormed, engine.ErrEventsLost} {
		if errors.Is(err, passing) {
			return !errors.Is(err, engine.ErrNotFound)
		}
	}
	return false
}

// watchUntilLost is one attempt to watch; answered reports whether the engine answered all that a look asks.
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
		// Without any event, too: a look is what brings residents back that died.
		if latest := time.Now().Add(lookAtLatest); next.IsZero() || next.After(latest) {
			next = latest
		}
		if err := engine.Await(ctx, events, next); err != nil {
			return answered, err
		}
	}
}
