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

// hookPace is how soon a hook that is at work is asked how it gets on, at first and after a while, unless it says
// itself when; and how soon members that are to run are looked at.
type hookPace struct{ first, longest time.Duration }

var usualHookPace = hookPace{time.Second, 10 * time.Second}

const (
	// lastLook is what a hook has at least whose time ran out while no controller was there to ask it.
	lastLook = 10 * time.Second
	// callingOff bounds what it takes to tell a hook that it need not go on.
	callingOff = 10 * time.Second
)

// toldOf is what a hook is told, as JSON.
type toldOf struct {
	ID      string            `json:"id"`
	Hook    domain.HookMoment `json:"hook"`
	Cluster string            `json:"cluster"`
	Group   string            `json:"group"`
	Role    string            `json:"role"`
	From    int               `json:"from"`
	To      int               `json:"to"`
	Members []string          `json:"members,omitempty"`
}

// newHookCall returns the call of a hook about a change that nobody knows of yet.
func newHookCall(moment domain.HookMoment, c change, to int) domain.HookCall {
	return domain.HookCall{
		ID: strings.ToLower(rand.Text()), Moment: moment, At: c.entry.At.UTC().Round(0), From: c.decision.From, To: to, Why: c.entry.Why(),
	}
}

// tell tells a hook of a change, and waits until it has done what it does. It goes on where a former controller has
// begun. How far it is is stored on the way.
func (s *scaler) tell(ctx context.Context, f *followed, policy domain.AutoscalingPolicy, call domain.HookCall) error {
	hook, now := *policy.Hooks.At(call.Moment), time.Now()
	if !call.AtWork() {
		call.Told = now.UTC().Round(0)
		if err := f.calls.note(ctx, call); err != nil {
			return err
		}
	}
	deadline := call.Told.Add(hook.Limit())
	if late := now.Add(min(lastLook, hook.Limit())); deadline.Before(late) {
		deadline = late
	}
	var trouble error
	within, cancel := context.WithDeadlineCause(ctx, deadline, errHookLate)
	defer cancel()
	for wait := s.hookPace.first; ; wait = min(2*wait, s.hookPace.longest) {
		reply, err := s.converse(within, hook, policy, call)
		after := reply.After
		transient, again := errors.AsType[*meter.TransientError](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && reply.Done:
			return nil
		case within.Err() != nil:
			return lateHook(hook, call, trouble)
		case again:
			trouble, after = transient.Err, transient.After
			call.Progress = trouble.Error()
		case err != nil:
			return err
		default:
			trouble, call.Location, call.Progress = nil, reply.Location, reply.Progress
		}
		if err := f.calls.note(ctx, call); err != nil {
			return err
		}
		pause(within, max(after, wait))
	}
}

// errPolicyChanged calls a removal off.
var errPolicyChanged = &reconcile.HeldError{Why: "the policy was changed meanwhile, and decides anew"}

// errHookLate ends the time that a hook has.
var errHookLate = errors.New("its time is over")

// lateHook says what is known of a hook whose time is over.
func lateHook(hook domain.ScalingHook, call domain.HookCall, trouble error) error {
	switch limit := hook.Limit(); {
	case trouble != nil:
		return fmt.Errorf("%w; it was tried for %s", trouble, limit)
	case call.Progress != "":
		return fmt.Errorf("it was not done within %s; it said last: %s", limit, call.Progress)
	default:
		return fmt.Errorf("it was not done within %s", limit)
	}
}

// converse sends a hook one request, when it is its turn.
func (s *scaler) converse(ctx context.Context, hook domain.ScalingHook, policy domain.AutoscalingPolicy, call domain.HookCall) (meter.Reply, error) {
	select {
	case s.turns.tellings <- struct{}{}:
		defer func() { <-s.turns.tellings }()
	case <-ctx.Done():
		return meter.Reply{}, context.Cause(ctx)
	}
	return meter.Tell(ctx, hook, call.ID, call.Location, toldOf{
		call.ID, call.Moment, policy.Cluster, policy.Group, policy.Role, call.From, call.To, call.Members,
	})
}

// beforeRemoval tells the user's hook which members are to go, and notes in came that it was, once they may. They stay
// unless it succeeds. Calls is ctx as long as nobody calls the removal off.
func (s *scaler) beforeRemoval(ctx, calls context.Context, policy domain.AutoscalingPolicy, c change, gone leaving, came *carried) error {
	f := c.policy
	if policy.Hooks.BeforeRemoval == nil || len(gone.there) == 0 {
		return nil
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
	err := s.tell(calls, f, policy, call)
	f.removing.Store(false)
	held, calledOff := errors.AsType[*reconcile.HeldError](err)
	switch {
	case err == nil:
		came.told = slices.Clone(call.Members)
		return nil
	case calledOff:
		return held
	case ctx.Err() != nil:
		return ctx.Err() // the next controller goes on
	}
	// The same change keeps its ID: what the hook has begun may be of use then.
	call.Told, call.Location, call.Progress = time.Time{}, "", ""
	if unstored := f.calls.note(ctx, call); unstored != nil {
		return unstored
	}
	return &staysError{fmt.Sprintf("hook before_removal failed for %s, and nobody goes: %v", strings.Join(call.Members, ", "), err)}
}

// forgetCall forgets a call that is of no use any more, and tells the hook where it is at work.
func (s *scaler) forgetCall(ctx context.Context, f *followed, call domain.HookCall) error {
	s.callOff(ctx, call)
	return f.calls.remove(ctx, call.ID)
}

// callOff tells a hook that it need not go on, where it can be told.
func (s *scaler) callOff(ctx context.Context, call domain.HookCall) {
	if !call.AtWork() || call.Location == "" {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, callingOff)
		defer cancel()
		if err := meter.CallOff(ctx, call.Location); err != nil {
			s.log.Info("a hook could not be told that it need not go on", "change", call.ID, "error", err)
		}
	}()
}

// recallHooks reads which hooks were at work when the former controller ended. It goes on without what of it can't be
// read.
func (s *scaler) recallHooks(ctx context.Context) error {
	known, unread, err := loadHookCalls(ctx, s.reconciler.Engine)
	if unread != nil {
		s.log.Error("which hooks are at work can't be read in part; it goes on without", "error", unread)
	}
	for key, calls := range known {
		if s.followed[key] == nil {
			s.followed[key] = &followed{restored: true}
		}
		s.followed[key].calls, s.followed[key].recalled = calls, true
	}
	return err
}

// stopHooks has the hooks of a policy not be waited for any more, for a reason. Those that are told again are gone on
// with.
func (f *followed) stopHooks(why error) {
	if f.changing {
		f.callOff(why)
	}
	if f.stopTelling != nil {
		f.stopTelling()
	}
}

// heedHooks takes notice of how the hooks of a policy stand before it decides. While one is at work, and as long as it
// takes to carry out what it was told of, no member goes.
func (s *scaler) heedHooks(ctx context.Context, f *followed, a *asked) error {
	if f.changing || slices.ContainsFunc(f.calls.of(domain.AfterAddition), domain.HookCall.AtWork) {
		a.seen.Busy = cmp.Or(a.seen.Busy, "a hook is at work")
	}
	if err := f.calls.conflict(); err != nil || f.changing {
		return err
	}
	err := s.recoverAdditions(ctx, f, a.scene)
	s.tellAdditions(ctx, f)
	return err
}

// forgetRemoval forgets a removal that is not wanted any more.
func (s *scaler) forgetRemoval(ctx context.Context, f *followed) (failed error) {
	for _, call := range f.calls.of(domain.BeforeRemoval) {
		failed = errors.Join(failed, s.forgetCall(ctx, f, call))
	}
	return failed
}

// goesOn returns the removal whose hook was at work when the controller died, to be gone on with; false where there is
// none, or it is not to be any more.
func (f *followed) goesOn(a *asked) (change, bool) {
	if !f.recalled || f.changing {
		return change{}, false
	}
	f.recalled = a.seen.Held != "" // it may be able to later
	policy := f.document.Spec
	for _, call := range f.calls.of(domain.BeforeRemoval) {
		if !call.AtWork() || policy.Hooks.BeforeRemoval == nil || policy.DryRun || policy.Paused == domain.PauseAll || policy.Paused == domain.PauseIn ||
			a.seen.Count != call.From || call.To < policy.Min {
			continue
		}
		f.recalled = false
		c := change{policy: f, scene: a.scene, resumed: &call}
		c.decision.From, c.decision.To = call.From, call.To
		c.entry = madeBy(policy.Key(), domain.Scaled{At: call.At, From: call.From, To: call.To, Why: call.Why})
		c.entry.Ready = a.seen.Ready
		if c.entry.Until = a.seen.Now; c.entry.Until.Before(c.entry.At) { // the clock was put back
			c.entry.Until = c.entry.At
		}
		return c, true
	}
	return change{}, false
}
