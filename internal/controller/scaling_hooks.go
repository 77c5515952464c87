package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// hookPace is the first and the longest interval at which a hook at work is polled, unless it names one itself, and at
// which started members are checked. Once a hook is done, guards may see its own work, such as moving data, for lag.
type hookPace struct{ first, longest, lag time.Duration }

var usualHookPace = hookPace{time.Second, 10 * time.Second, time.Minute}

const (
	// lastLook is the minimum time left for a hook whose time ran out while no controller could ask it.
	lastLook = 10 * time.Second
	// callingOff bounds the request that cancels a hook's work.
	callingOff = 10 * time.Second
)

// hookRequest is the body of a hook request, as JSON.
type hookRequest struct {
	ID      string            `json:"id"`
	Hook    domain.HookMoment `json:"hook"`
	Cluster string            `json:"cluster"`
	Group   string            `json:"group"`
	Role    string            `json:"role"`
	From    int               `json:"from"`
	To      int               `json:"to"`
	Members []string          `json:"members,omitempty"`
}

// newHookCall returns a new hook call for a change.
func newHookCall(moment domain.HookMoment, c change, to int) domain.HookCall {
	return domain.HookCall{
		ID: strings.ToLower(rand.Text()), Moment: moment, At: c.entry.At.UTC().Round(0), From: c.decision.From, To: to,
		Why: c.entry.Why(),
	}
}

// callHook calls a hook about a change and waits until it is done, storing its progress, also in call. It continues a
// call that a former controller began.
func (s *scaler) callHook(
	ctx context.Context, f *followed, policy domain.AutoscalingPolicy, call *domain.HookCall,
) error {
	hook, now := *policy.Hooks.At(call.Moment), time.Now()
	begins := !call.AtWork()
	if begins {
		call.Called = now.UTC().Round(0)
		if err := f.calls.note(ctx, *call); err != nil {
			return err
		}
	}
	deadline := call.Called.Add(hook.Limit())
	if late := now.Add(min(lastLook, hook.Limit())); deadline.Before(late) {
		deadline = late
	}
	var trouble error
	within, cancel := context.WithDeadlineCause(ctx, deadline, errHookLate)
	defer cancel()
	for wait := s.hookPace.first; ; wait = min(2*wait, s.hookPace.longest) {
		asked := *call
		if begins { // it keeps the Location of a failed attempt until it has its own, as that may have to be cancelled
			asked.Location = ""
		}
		reply, err := s.converse(within, hook, policy, asked)
		after := reply.After
		transient, again := errors.AsType[*meter.TransientError](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && reply.Done:
			return nil
		case within.Err() != nil:
			return lateHook(hook, *call, trouble)
		case again:
			trouble, after = transient.Err, transient.After
			call.Progress = trouble.Error()
		case err != nil:
			return err
		default:
			begins, trouble, call.Location, call.Progress = false, nil, reply.Location, reply.Progress
		}
		if err := f.calls.note(ctx, *call); err != nil {
			return err
		}
		pause(within, max(after, wait))
	}
}

// errPolicyChanged cancels a removal after a change of the policy.
var errPolicyChanged = &reconcile.HeldError{Why: "the policy has changed; deciding again"}

// errHookLate is the cause when a hook's time is up.
var errHookLate = errors.New("its timeout has passed")

// lateHook returns the error for a hook whose time is up, with what is known about it.
func lateHook(hook domain.ScalingHook, call domain.HookCall, trouble error) error {
	switch limit := hook.Limit(); {
	case trouble != nil:
		return fmt.Errorf("%w; tried for %s", trouble, limit)
	case call.Progress != "":
		return fmt.Errorf("not done within %s; last progress: %s", limit, call.Progress)
	default:
		return fmt.Errorf("not done within %s", limit)
	}
}

// converse sends one request to a hook, within the limit of concurrent requests.
func (s *scaler) converse(
	ctx context.Context, hook domain.ScalingHook, policy domain.AutoscalingPolicy, call domain.HookCall,
) (meter.Reply, error) {
	select {
	case s.turns.requests <- struct{}{}:
		defer func() { <-s.turns.requests }()
	case <-ctx.Done():
		return meter.Reply{}, context.Cause(ctx)
	}
	return meter.CallHook(ctx, hook, call.ID, call.Location, hookRequest{
		call.ID, call.Moment, policy.Cluster, policy.Group, policy.Role, call.From, call.To, call.Members,
	})
}

// beforeRemoval calls the hook about the members to be removed, and records in came that it was called. They stay
// unless it succeeds and the guards still allow the removal then. The context calls is cancelled if the removal is
// called off.
func (s *scaler) beforeRemoval(
	ctx, calls context.Context, policy domain.AutoscalingPolicy, c change, gone leaving, came *carried,
) error {
	f := c.policy
	if policy.Hooks.BeforeRemoval == nil || len(gone.there) == 0 {
		return s.forgetRemoval(ctx, f)
	}
	call := newHookCall(domain.BeforeRemoval, c, c.decision.From-gone.count)
	call.Members, call.Remove = gone.there, gone.members
	for _, former := range f.calls.of(domain.BeforeRemoval) {
		if former.Same(call) {
			call = former
		} else if err := s.forgetCall(ctx, f, former); err != nil {
			return err
		}
	}
	came.change = call.ID
	f.removing.Store(true)
	err := s.callHook(calls, f, policy, &call)
	if err == nil {
		came.notified = slices.Clone(call.Members)
		err = s.awaitGuards(calls, policy, c, gone)
	}
	f.removing.Store(false)
	held, calledOff := errors.AsType[*reconcile.HeldError](err)
	switch {
	case calledOff:
		return held
	case ctx.Err() != nil:
		return ctx.Err() // the next controller continues
	case err == nil:
		return nil
	case came.notified != nil: // the hook is done for nothing
		return errors.Join(err, s.forgetCall(ctx, f, call))
	}
	// A retry of the same change keeps its ID, so that the hook can build on what it has done. Until then it keeps its
	// Location, as a hook that was late may still be at work, and would have to be cancelled.
	call.Called, call.Progress = time.Time{}, ""
	if unstored := f.calls.note(ctx, call); unstored != nil {
		return unstored
	}
	return &staysError{
		fmt.Sprintf("hook before_removal failed for %s, so no member is removed: %v", strings.Join(call.Members, ", "),
			err),
	}
}

// forgetCall deletes a call that is no longer needed, and cancels the hook's work.
func (s *scaler) forgetCall(ctx context.Context, f *followed, call domain.HookCall) error {
	s.callOff(ctx, call)
	return f.calls.remove(ctx, call.ID)
}

// callOff asks a hook to stop working on a call, if the hook has given an address for that.
func (s *scaler) callOff(ctx context.Context, call domain.HookCall) {
	if call.Location == "" {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, callingOff)
		defer cancel()
		if err := meter.CallOff(ctx, call.Location); err != nil {
			s.log.Info("cancelling a hook failed", "change", call.ID, "error", err)
		}
	}()
}

// recallHooks reads which hooks were at work when the former controller ended, without those that can't be read.
func (s *scaler) recallHooks(ctx context.Context) error {
	known, unread, err := loadHookCalls(ctx, s.reconciler.Engine)
	if unread != nil {
		s.log.Error("some hook calls are unreadable; continuing without them", "error", unread)
	}
	for key, calls := range known {
		if s.followed[key] == nil {
			s.followed[key] = &followed{restored: true}
		}
		s.followed[key].calls, s.followed[key].recalled = calls, true
	}
	return err
}

// stopHooks stops waiting for the hooks of a policy. Calls that are repeated later continue.
func (f *followed) stopHooks(why error) {
	if f.changing {
		f.callOff(why)
	}
	if f.stopAdditionHook != nil {
		f.stopAdditionHook()
	}
}

// heedHooks updates the state of a policy's hooks before it decides. No member is removed while a hook is at work, or
// until the change that it was called for is carried out.
func (s *scaler) heedHooks(ctx context.Context, f *followed, a *asked) error {
	if f.changing || slices.ContainsFunc(f.calls.of(domain.AfterAddition), domain.HookCall.AtWork) {
		a.seen.Busy = cmp.Or(a.seen.Busy, "a hook is at work")
	}
	if err := f.calls.conflict(); err != nil || f.changing {
		return err
	}
	err := errors.Join(f.recoverRemovals(ctx, a.observation), s.recoverAdditions(ctx, f, a.observation))
	s.startAdditionHook(ctx, f)
	return err
}

// recoverRemovals finds out which removals were carried out without that being stored, and forgets their calls.
func (f *followed) recoverRemovals(ctx context.Context, observation reconcile.Observation) (failed error) {
	policy := f.document.Spec
	for _, call := range f.calls.of(domain.BeforeRemoval) {
		if removalDone(observation.Groups[policy.Group], policy.Role, call) {
			failed = errors.Join(failed, f.calls.removed(ctx, call.ID))
		}
	}
	return failed
}

// removalDone reports whether a call is about a removal whose members a group no longer has. Nothing is known of a
// group that is gone.
func removalDone(group domain.GroupDocument, role string, call domain.HookCall) bool {
	return call.Moment == domain.BeforeRemoval && group.Spec.Name != "" &&
		!slices.ContainsFunc(group.Indexes(role), func(i int) bool {
			return slices.Contains(call.Members, domain.MemberName(group.Spec.Name, role, i))
		})
}

// endCalls deletes the calls of a deleted policy, and cancels the hooks' work.
func (s *scaler) endCalls(ctx context.Context, f *followed, group domain.GroupDocument, role string) error {
	ended, err := f.calls.end(ctx)
	for _, call := range ended {
		if !removalDone(group, role, call) {
			s.callOff(ctx, call)
		}
	}
	return err
}

// forgetRemoval deletes a removal that is no longer wanted.
func (s *scaler) forgetRemoval(ctx context.Context, f *followed) (failed error) {
	for _, call := range f.calls.of(domain.BeforeRemoval) {
		failed = errors.Join(failed, s.forgetCall(ctx, f, call))
	}
	return failed
}

// forgetWork deletes a removal whose hook is at work, but is not asked any more, as its policy has changed.
func (s *scaler) forgetWork(ctx context.Context, f *followed) (failed error) {
	for _, call := range f.calls.of(domain.BeforeRemoval) {
		if call.AtWork() {
			failed = errors.Join(failed, s.forgetCall(ctx, f, call))
		}
	}
	return failed
}

// goesOn returns the removal to continue whose hook was at work when the former controller died; false if there is
// none, or if it is no longer allowed.
func (f *followed) goesOn(a *asked) (change, bool) {
	if !f.recalled || f.changing {
		return change{}, false
	}
	f.recalled = a.seen.Held != "" // it may be possible later
	policy := f.document.Spec
	for _, call := range f.calls.of(domain.BeforeRemoval) {
		if !call.AtWork() || policy.Hooks.BeforeRemoval == nil || policy.DryRun || policy.Paused == domain.PauseAll ||
			policy.Paused == domain.PauseIn ||
			a.seen.Count != call.From || call.To < policy.Min {
			continue
		}
		f.recalled = false
		c := change{policy: f, observation: a.observation, resumed: &call}
		c.decision.From, c.decision.To = call.From, call.To
		c.entry = madeBy(policy.Key(), domain.Scaled{At: call.At, From: call.From, To: call.To, Why: call.Why})
		c.entry.Ready = a.seen.Ready
		if c.entry.Until = a.seen.Now; c.entry.Until.Before(c.entry.At) { // the clock was set back
			c.entry.Until = c.entry.At
		}
		return c, true
	}
	return change{}, false
}
