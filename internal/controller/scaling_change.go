package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// change is a decided change of a count.
type change struct {
	policy *followed
	// autoscaler is what made the decision: the policy may be replaced meanwhile.
	autoscaler  *autoscale.Autoscaler
	decision    autoscale.Decision
	entry       autoscale.Entry
	observation reconcile.Observation
	// resumed is the removal that a former controller began; nil for a new one.
	resumed *domain.HookCall
	// yields are the members to remove to make room for a higher priority; empty for other changes.
	yields []string
}

// outcome is the result of a change: what was done, if anything, and the error.
type outcome struct {
	change

	done *domain.Scaled
	err  error
}

const (
	// changesAtOnce bounds how many groups grow at once, and how many shrink. The limits are separate so that growing
	// does not wait for members to end.
	changesAtOnce = 8
	// requestsAtOnce bounds how many requests to hooks, and hook commands, run at once.
	requestsAtOnce = 32
	// longestTurn is how long a change waits for its turn before it should be decided again.
	longestTurn = 30 * time.Second
)

// turns are semaphores that limit concurrent changes.
type turns struct {
	outs, ins, requests chan struct{}
	longest             time.Duration
}

func newTurns() turns {
	return turns{
		make(chan struct{}, changesAtOnce), make(chan struct{}, changesAtOnce), make(chan struct{}, requestsAtOnce),
		longestTurn,
	}
}

// take acquires a slot, and returns the function that releases it. After too long a wait, the error is
// a [*reconcile.HeldError].
func (t turns) take(ctx context.Context, places chan struct{}) (giveBack func(), err error) {
	timer := time.NewTimer(t.longest)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-timer.C:
		return nil, &reconcile.HeldError{
			Why: fmt.Sprintf("waited %s for changes of other roles; deciding again", t.longest),
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin carries out a change in a goroutine. The outcome goes to the loop.
func (s *scaler) begin(ctx context.Context, c change) {
	document := c.policy.document
	c.autoscaler = c.policy.autoscaler
	c.policy.changing, c.policy.yielding.going = true, len(c.yields) > 0
	s.changing++
	calls, callOff := context.WithCancelCause(ctx)
	c.policy.callOff = callOff
	go func() {
		defer callOff(nil)
		o := outcome{change: c}
		came, err := s.carryOut(ctx, calls, document, c)
		o.err, o.entry.Change, o.entry.OutcomeWhy = err, came.change, ""
		switch {
		case came.done.To != came.done.From:
			o.done = &came.done
			o.entry.Outcome, o.entry.OutcomeWhy, o.entry.To, o.entry.Until = autoscale.OutcomeDone, came.short,
				came.done.To, came.done.At
			if err != nil {
				// in the upkeep of the group
				o.entry.OutcomeWhy = fmt.Sprintf("%v; the controller is trying again", err)
			}
		case err != nil:
			o.entry.Outcome, o.entry.OutcomeWhy = outcomeOf(err)
		default:
			o.entry.Outcome, o.entry.OutcomeWhy = autoscale.OutcomeHeld, came.short
		}
		if len(came.notified) > 0 {
			o.entry.OutcomeWhy += "; hook before_removal has finished for members that are still there: " +
				domain.Enumerate(came.notified)
		}
		select {
		case s.outcomes <- o:
		case <-ctx.Done():
		}
	}()
}

// finish records the outcome of a change that has ended.
func (s *scaler) finish(o outcome, now time.Time) {
	f := o.policy
	f.changing, f.yielding.going = false, false
	if len(o.yields) > 0 && o.done == nil {
		s.refuse(f, o.entry.OutcomeWhy, now)
	}
	if f.hurries || f.asked != nil {
		// What it has asked meanwhile is about the count before the change.
		f.hurries, f.asked, f.next = false, nil, time.Time{}
	}
	s.changing--
	key := f.document.Spec.Key()
	if o.done != nil {
		o.autoscaler.Changed(&f.state, o.done.At, o.done.From, o.done.To)
		s.changed = true
		s.log.Info("a role was scaled", "policy", key, "from", o.done.From, "to", o.done.To, "why", o.done.Why)
	}
	if o.err == nil && o.done == nil {
		f.state.Initial = false // it is not possible
	}
	if o.err != nil && o.entry.Outcome != autoscale.OutcomeHeld {
		s.log.Error("scaling a role failed; trying again", "policy", key, "from", o.decision.From, "to", o.decision.To,
			"error", o.err)
	}
	s.note(f.document.Spec, o.entry)
}

// outcomeOf classifies the error of a change that was not carried out.
func outcomeOf(err error) (autoscale.Outcome, string) {
	var held *reconcile.HeldError
	var counted *reconcile.CountError
	var stays *staysError
	switch {
	case errors.As(err, &held), errors.As(err, &counted), errors.As(err, &stays):
		return autoscale.OutcomeHeld, err.Error()
	}
	if locked, ok := errors.AsType[*engine.LockedError](err); ok {
		return autoscale.OutcomeHeld, fmt.Sprintf("the group is held by %s (%s)", locked.Holder.Operation,
			locked.Holder.Who)
	}
	return autoscale.OutcomeFailed, err.Error()
}

// heldBack reports whether an error means that nothing was done.
func heldBack(err error) bool {
	outcome, _ := outcomeOf(err)
	return outcome == autoscale.OutcomeHeld
}

// unchanged returns an error if a policy has changed since it decided, as a hook may have taken long.
func (s *scaler) unchanged(ctx context.Context, decided domain.AutoscalingPolicyDocument) error {
	now, err := s.reconciler.Policy(ctx, decided.Spec.Group, decided.Spec.Role)
	switch {
	case errors.Is(err, engine.ErrNotFound), err == nil && now.Ending:
		return errPolicyOver
	case err == nil && (now.ID != decided.ID || now.Revision != decided.Revision):
		return errPolicyChanged
	}
	return err
}

// carried is the result of carrying out a change.
type carried struct {
	done domain.Scaled
	// short says why less was done than decided. notified are the members that the hook was told would go, and that
	// stayed.
	short    string
	notified []string
	// change is the ID by which hooks know the change; "" without hooks.
	change string
}

// carryOut changes a count. For a removal, it chooses members that are not busy, and calls the before_removal hook with
// the context calls. The after_addition hook is called later.
func (s *scaler) carryOut(
	ctx, calls context.Context, document domain.AutoscalingPolicyDocument, c change,
) (came carried, err error) {
	policy, began := document.Spec, time.Now()
	scaling := reconcile.Scaling{
		Group: policy.Group, Role: policy.Role, From: c.decision.From, To: c.decision.To, At: c.entry.Until,
		Why: c.entry.Why(),
	}
	places := s.turns.outs
	if scaling.To < scaling.From {
		gone, err := s.leaving(ctx, policy, c)
		if err != nil {
			return came, errors.Join(err, s.forgetWork(ctx, c.policy))
		}
		if scaling.To = scaling.From - gone.count; scaling.To > c.decision.To {
			came.short = gone.why
		}
		scaling.Remove, places = gone.members, s.turns.ins
		if err = s.beforeRemoval(ctx, calls, policy, c, gone, &came); err != nil {
			return came, err
		}
		if came.notified != nil {
			scaling.At = scaling.At.Add(time.Since(began))
		}
	}
	giveBack, err := s.turns.take(ctx, places)
	if err != nil {
		return came, err
	}
	defer giveBack()
	if err := s.unchanged(ctx, document); err != nil {
		return came, err
	}
	err = s.scale(ctx, policy, c, scaling, &came)
	went := scaling.Remove[:min(max(came.done.From-came.done.To, 0), len(scaling.Remove))]
	came.notified = slices.DeleteFunc(came.notified, func(name string) bool { return slices.Contains(went, name) })
	return came, err
}

// scale carries out a scaling, and updates the hook calls.
func (s *scaler) scale(
	ctx context.Context, policy domain.AutoscalingPolicy, c change, scaling reconcile.Scaling, came *carried,
) error {
	calls := c.policy.calls
	expected, err := s.expectAddition(ctx, policy, c)
	if err != nil {
		return err
	}
	done, limited, err := s.reconciler.Scale(ctx, scaling)
	came.done, came.short = done, cmp.Or(limited, came.short)
	changed := done.To != done.From
	switch {
	// it may have been carried out, see recoverAdditions
	case expected != nil && !changed && err != nil && !heldBack(err):
	case expected != nil:
		came.change = expected.ID
		err = errors.Join(err, calls.added(ctx, *expected, max(done.To, expected.From)))
	case changed:
		for _, call := range calls.of(domain.BeforeRemoval) {
			err = errors.Join(err, calls.removed(ctx, call.ID))
		}
	}
	return err
}
