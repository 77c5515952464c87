package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// scalingLock is held by the controller that runs the policies.
	scalingLock = "autoscaling"
	// standby is how soon a controller retries to get that lock.
	standby = 5 * time.Second
)

// policyPace limits looks after events. It is quick, as a user who changes a policy wants to see the effect.
var policyPace = engine.Pace{Factor: 20, Longest: 2 * time.Second}

// watchScaling runs the autoscaling policies, in one controller of a cluster at a time.
func watchScaling(
	ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger, board *board,
) error {
	if err := awaitPolicies(ctx, r.Engine, events); err != nil {
		return err
	}
	holder := engine.Holder{
		Who: "controller", Process: os.Getpid(), Operation: "autoscaling", Since: time.Now(), Controller: true,
	}
	held, release, err := r.Engine.Hold(ctx, scalingLock, holder)
	if _, locked := errors.AsType[*engine.LockedError](err); locked {
		pause(ctx, standby)
		return nil
	}
	if err != nil {
		return err
	}
	s, err := newScaler(held, r, log, board)
	if err == nil {
		err = s.run(held, events)
		s.keepAtEnd(held)
	}
	return errors.Join(err, release())
}

// awaitPolicies returns once there is a policy; until then nothing is kept for running some.
func awaitPolicies(ctx context.Context, e engine.Engine, events <-chan struct{}) error {
	for {
		start := time.Now()
		policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, e.Snapshot())
		if err != nil || slices.ContainsFunc(slices.Collect(maps.Values(policies)), decides) {
			return err
		}
		engine.ResidentPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, time.Now().Add(atLatest)); err != nil {
			return err
		}
	}
}

// decides reports whether a policy should be run.
func decides(doc domain.AutoscalingPolicyDocument) bool { return !doc.Ending }

// scaler runs the policies of a cluster. It decides in one goroutine, and leaves slow work to others.
type scaler struct {
	reconciler reconcile.Reconciler
	meter      *meter.Meter
	log        *slog.Logger
	logged     faults
	board      *board
	policies   engine.Decoded[domain.AutoscalingPolicyDocument, *domain.AutoscalingPolicyDocument]
	memory     *memory
	history    *historyKeeper
	// scaledAt is when each policy last changed a count, by policy key, in the history as it was read.
	scaledAt map[string]time.Time
	followed map[string]*followed
	// woken is when to look because of an event, zero if there was none since the last look. rested is
	// the earliest time for that.
	woken, rested time.Time
	// asking is the number of policies that have asked and not decided yet. Their answers arrive on answers and are
	// collected in answered; hooks limits how many external algorithms are asked at once.
	asking   int
	answers  chan *asked
	answered []*asked
	hooks    chan struct{}
	// outcomes are the results of changes, changing is the number of changes in progress, and turns limits those.
	outcomes chan outcome
	changing int
	turns    turns
	// hooked are the results of after_addition hooks, and hookPace is how often hooks are polled.
	hooked   chan hooked
	hookPace hookPace
	sharing  sharing
	// resizes are the results of changes of size.
	resizes chan resized
	// changed is set after decisions and changes that have to be stored at once.
	changed bool
}

// followed is a policy that the controller runs.
type followed struct {
	document   domain.AutoscalingPolicyDocument
	autoscaler *autoscale.Autoscaler
	questions  []meter.Question
	state      autoscale.State
	// windows are the samples of its metrics whose sources keep none, as last stored or read.
	windows map[string]meter.Window
	// next is when it asks again. asked is its question until it decides; nil otherwise. restored is set
	// until the first decision after its state was read. idle policies decide nothing: they are gone, ending,
	// or unknown to this build.
	next           time.Time
	asked          *asked
	restored, idle bool
	// changing is set while its last decision is being carried out; it is not forgotten before that ends.
	changing bool
	sizing
	// calls are its hook calls that have not ended. recalled is set if they are a former controller's and a removal
	// among them may have to be continued; removing is set while the before_removal hook is at work. callOff
	// cancels that, and hurries makes the policy decide right after it; stopAdditionHook cancels the after_addition
	// hook, nil if there is none.
	calls            *hookCalls
	recalled         bool
	removing         atomic.Bool
	callOff          context.CancelCauseFunc
	hurries          bool
	stopAdditionHook context.CancelFunc
	yielding         yielding
	silent           silent
}

// newScaler returns a scaler with the stored state of the policies.
func newScaler(ctx context.Context, r reconcile.Reconciler, log *slog.Logger, board *board) (*scaler, error) {
	s := &scaler{
		reconciler: r, meter: meter.New(r.Engine), log: log, logged: faults{}, board: board,
		memory: newMemory(r.Engine), history: newHistoryKeeper(r.Engine),
		scaledAt: map[string]time.Time{}, followed: map[string]*followed{}, answers: make(chan *asked),
		hooks:    make(chan struct{}, hooksAtOnce),
		outcomes: make(chan outcome), turns: newTurns(), hooked: make(chan hooked), resizes: make(chan resized),
		hookPace: usualHookPace,
		sharing:  sharing{seen: map[string]time.Time{}, shares: make(chan share)},
	}
	known, unread, err := s.memory.load(ctx)
	if unread != nil {
		log.Error("a part of the autoscaling state is unreadable; continuing without it", "error", unread)
	}
	for key, policy := range known {
		f := &followed{
			state: policy.State, windows: policy.Windows, restored: true, calls: newHookCalls(r.Engine, key),
		}
		f.document.ID = policy.ID
		s.followed[key] = f
		s.meter.Restore(policy.Windows, time.Now())
	}
	return s, errors.Join(err, s.recallHooks(ctx), s.recallSilent(ctx), s.loadHistory(ctx))
}

// loadHistory reads the history, without the parts that can't be read.
func (s *scaler) loadHistory(ctx context.Context) error {
	stored, err := engine.Contents(ctx, s.reconciler.Engine, autoscale.HistoryKind)
	if err != nil {
		return err
	}
	entries, unread := autoscale.ReadHistory(stored, time.Now(), autoscale.Selection{OnlyChanges: true})
	for _, e := range entries {
		if e.Scaled() {
			s.scaledAt[e.Policy] = e.Until
		}
	}
	if unread != nil {
		s.log.Error("a part of the scaling history is unreadable; continuing without it", "error", unread)
	}
	err = s.history.Load(ctx, time.Now())
	if _, corrupt := errors.AsType[*autoscale.ChunkError](err); corrupt {
		return nil // reported above
	}
	return err
}

// run decides whenever a policy is due, until ctx is done, the event stream ends, or there are no policies left.
func (s *scaler) run(ctx context.Context, events <-chan struct{}) error {
	for look := true; ; {
		start := time.Now()
		var err error
		if look {
			err = s.look(ctx, start)
			s.woken, s.rested = time.Time{}, start.Add(policyPace.After(time.Since(start)))
		}
		err = errors.Join(err, s.decide(ctx, start))
		next := s.next()
		switch {
		case errors.Is(err, engine.ErrConflict):
			return err // another controller has taken over
		case err == nil && len(s.followed) == 0 && s.changing == 0:
			return nil
		case err != nil:
			next = earliest(next, time.Now().Add(afterFault))
		}
		if (look || err != nil) && s.logged.news(everything, err) && err != nil && ctx.Err() == nil {
			s.log.Error("evaluating autoscaling policies failed; trying again", "error", err)
		}
		if look, err = s.await(ctx, events, next); err != nil {
			return err
		}
	}
}

// await returns once there is something to do: answers have arrived, a change was carried out, or it is time to look,
// either at next or after an event, within [policyPace].
func (s *scaler) await(ctx context.Context, events <-chan struct{}, next time.Time) (look bool, err error) {
	if !s.woken.IsZero() {
		next = earliest(next, s.woken)
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	var gathered <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-timer.C:
			return true, nil
		case o := <-s.outcomes:
			s.finish(o, time.Now())
			s.startAdditionHook(ctx, o.policy)
			return false, nil
		case t := <-s.hooked:
			s.finishAdditionHook(ctx, t, time.Now())
			return false, nil
		case made := <-s.sharing.shares:
			s.takeShare(made, time.Now())
			return s.anyDue(time.Now()), nil
		case r := <-s.resizes:
			s.finishResize(r)
			return false, nil
		case a := <-s.answers:
			s.answered = append(s.answered, a)
			if len(s.answered) == s.asking {
				return false, nil
			}
			if gathered == nil {
				gathered = time.After(gathering)
			}
		case <-gathered:
			return false, nil
		case _, open := <-events:
			if !open {
				return false, engine.ErrEventsLost
			}
			events = nil // one event is enough
			if s.woken.IsZero() {
				s.woken = s.rested
				timer.Reset(time.Until(earliest(next, s.woken)))
			}
		}
	}
}

// look makes the policies ask that are due or have changed.
func (s *scaler) look(ctx context.Context, now time.Time) error {
	snapshot := s.reconciler
	snapshot.Engine = s.reconciler.Engine.Snapshot()
	documents, err := s.policies.List(ctx, snapshot.Engine)
	if err != nil {
		for _, f := range s.followed {
			if !f.next.After(now) {
				f.next = now.Add(afterFault)
			}
		}
		return err
	}
	unfollowed := errors.Join(s.follow(ctx, snapshot.Engine, documents, now), s.share(ctx, snapshot.Engine, now))
	var due []*followed
	for _, key := range slices.Sorted(maps.Keys(s.followed)) {
		if f := s.followed[key]; !f.idle && f.asked == nil && f.isDue(now) {
			due = append(due, f)
			f.next = beat(f.document.Spec, len(s.followed), now)
		}
	}
	if len(due) == 0 {
		return unfollowed
	}
	return errors.Join(unfollowed, s.ask(ctx, snapshot, due, now))
}

// next returns when the next policy asks. A policy that waits for answers does not ask again before it decides.
func (s *scaler) next() time.Time {
	next := time.Now().Add(atLatest)
	if len(s.sharing.requests) > 0 && !s.sharing.deciding {
		next = s.sharing.again
	}
	for _, f := range s.followed {
		if !f.idle && f.asked == nil {
			next = earliest(next, f.next)
		}
	}
	return next
}

// anyDue reports whether any policy is due to ask.
func (s *scaler) anyDue(now time.Time) bool {
	for _, f := range s.followed {
		if !f.idle && f.asked == nil && f.isDue(now) {
			return true
		}
	}
	return false
}

// follow takes over new and changed policies, which decide at once, and forgets deleted ones. A deleted policy is kept
// until the last change of count is in the history.
func (s *scaler) follow(
	ctx context.Context, e engine.Engine, documents map[string]domain.AutoscalingPolicyDocument, now time.Time,
) (failed error) {
	for key, f := range s.followed {
		doc, found := documents[key]
		if f.idle = !found || !decides(doc) || f.autoscaler == nil; !f.idle {
			continue
		}
		f.asked = nil
		s.board.remove(key)
		f.stopHooks(errPolicyOver)
		if !found && !f.changing {
			failed = errors.Join(failed, s.leave(ctx, e, key))
		}
	}
	for key, doc := range documents {
		f := s.followed[key]
		if !decides(doc) || f != nil && reflect.DeepEqual(f.document, doc) {
			continue
		}
		if f != nil && (doc.Revision <= f.document.Revision || isAnother(doc, f.document)) {
			// It was destroyed and created again since the last look, or while there was no controller.
			if err := s.leave(ctx, e, key); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			f = nil
		}
		spec, err := s.reconciler.PolicyModels(ctx, doc.Spec)
		if err != nil {
			failed = errors.Join(failed, err) // such as when it was changed since it was read
			continue
		}
		autoscaler, err := autoscale.New(spec)
		if s.logged.news(key, err) && err != nil {
			s.log.Error("an autoscaling policy is invalid", "policy", key, "error", err)
		}
		if f == nil {
			f = &followed{calls: newHookCalls(s.reconciler.Engine, key)}
			s.followed[key] = f
		}
		if !reflect.DeepEqual(f.document.Spec, doc.Spec) {
			f.stopHooks(errPolicyChanged)
		}
		f.document, f.autoscaler, f.questions, f.next, f.asked = doc, autoscaler, questionsOf(doc.Spec), now, nil
		f.idle = err != nil // written by a newer build
	}
	return failed
}

// isAnother reports whether a policy was created after another one of its role was destroyed, as far as that is known.
func isAnother(doc, before domain.AutoscalingPolicyDocument) bool {
	return doc.ID != before.ID && doc.ID != "" && before.ID != ""
}

// leave forgets a deleted policy, after adding the change of count at its end to the history.
func (s *scaler) leave(ctx context.Context, e engine.Engine, key string) error {
	f := s.followed[key]
	name, role := autoscale.Entry{Policy: key}.Key()
	group, err := engine.Get[domain.GroupDocument](ctx, e, name)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if last := group.Scaled[role]; f.missesChange(last) && s.unnoted(key, last) {
		s.history.Add(madeBy(key, last))
	}
	if err := errors.Join(s.endCalls(ctx, f, group, role), s.forgetSilent(ctx, f)); err != nil {
		return err
	}
	f.asked = nil
	f.stopHooks(errPolicyOver)
	delete(s.followed, key)
	s.changed = true
	return nil
}

// isDue reports whether a policy should ask now. That includes a next time further away than it can be,
// after the clock was set back.
func (f *followed) isDue(now time.Time) bool {
	return !f.next.After(now) || f.next.Sub(now) > 2*f.document.Spec.Every()
}

// batch is the maximum number of policies that ask together, if the interval leaves room for several batches. Policies
// of a batch share what they read.
const batch = 100

// beat returns when a policy asks next. All policies with the same interval ask at the same times, however long that
// took before; many policies are spread over that many times within the interval.
func beat(policy domain.AutoscalingPolicy, policies int, now time.Time) time.Time {
	every := policy.Every()
	parts := min((policies+batch-1)/batch, max(int(every/time.Second), 1))
	offset := every / time.Duration(parts) * time.Duration(hashOf(policy.Key())%uint32(parts))
	return now.Add(-offset).Truncate(every).Add(every + offset)
}

// earliest returns the earlier of two times.
func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// decide makes the answered policies decide, and starts the changes that they decide on.
func (s *scaler) decide(ctx context.Context, now time.Time) error {
	var decided []change
	var unstored error
	for _, a := range s.answered {
		f := a.policy
		if f.asked != a {
			continue // the policy is gone or was replaced
		}
		f.asked = nil
		a.seen.Now = now
		// Store when it began to decide, so that a successor recognises its first change.
		s.changed = s.changed || f.state.Since.IsZero()
		s.recover(f, a.observation, a.seen, now)
		unstored = errors.Join(unstored, s.heedHooks(ctx, f, a))
		if c, goesOn := f.goesOn(a); goesOn {
			decided = append(decided, c)
			continue
		}
		a.seen.Yield = f.yielding.wanted
		decision := f.autoscaler.Decide(&f.state, a.seen)
		f.noteSpare(a, decision)
		unstored = errors.Join(unstored, s.noteSilent(ctx, f, decision.Guards, now))
		entry := autoscale.NewEntry(f.document.Spec.Key(), now, a.seen.Ready, decision)
		entry.Change, entry.OutcomeWhy = f.calls.atWork()
		entry.Resized, f.resized = f.resized, ""
		s.resize(ctx, f, a, decision.Resize)
		unwanted := decision.To > decision.From || decision.To == decision.From && !decision.Guarded() ||
			f.document.Spec.DryRun
		if !f.changing && a.seen.Held == "" && unwanted {
			unstored = errors.Join(unstored, s.forgetRemoval(ctx, f))
		}
		switch {
		case f.changing && (decision.To > decision.From || decision.To == decision.From && f.yielding.needless()):
			f.hurries = true
			f.callOff(&reconcile.HeldError{
				Why: fmt.Sprintf("%d members are wanted now, so none is removed", decision.To),
			})
			switch {
			case f.removing.Load():
				entry.Outcome, entry.OutcomeWhy = autoscale.OutcomeHeld, "the removal in progress is cancelled first"
			case entry.To != entry.From: // it asked while the hook was at work, which has ended since
				entry.Outcome, entry.OutcomeWhy = autoscale.OutcomeHeld, stillChanging
			}
			s.note(f.document.Spec, entry)
		case decision.To == decision.From:
			s.note(f.document.Spec, entry)
		case f.document.Spec.DryRun:
			entry.Outcome = autoscale.OutcomeDryRun
			s.note(f.document.Spec, entry)
		default:
			decided = append(decided, change{
				policy: f, decision: decision, entry: entry, observation: a.observation,
				yields: f.goingFor(a.seen, decision),
			})
		}
	}
	s.asking -= len(s.answered)
	s.answered = nil
	// Store earlier changes before starting new ones: after a crash, the role itself only has its last change.
	err := errors.Join(unstored, s.keep(ctx, now))
	if errors.Is(err, engine.ErrConflict) {
		return err
	}
	for _, c := range decided {
		s.begin(ctx, c)
	}
	return err
}

// note records the outcome of a decision.
func (s *scaler) note(policy domain.AutoscalingPolicy, e autoscale.Entry) {
	s.history.Add(e)
	s.board.show(policy, e)
}
