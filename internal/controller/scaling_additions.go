package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// expectAddition stores, before members are added, that the hook has to be called about them. A successor then checks
// whether they were added.
func (s *scaler) expectAddition(
	ctx context.Context, policy domain.AutoscalingPolicy, c change,
) (*domain.HookCall, error) {
	if policy.Hooks.AfterAddition == nil || c.decision.To < c.decision.From {
		return nil, nil
	}
	call := newHookCall(domain.AfterAddition, c, c.decision.To)
	if reconcile.SchedulingOf(s.reconciler.Engine.Traits(), c.observation.Groups[policy.Group].Spec,
		policy.Role) == domain.SchedulingPinned {
		taken := map[int]bool{}
		for _, i := range c.observation.Groups[policy.Group].Indexes(policy.Role) {
			taken[i] = true
		}
		for i := 0; len(call.Members) < call.To-call.From; i++ {
			if !taken[i] {
				call.Members = append(call.Members, domain.MemberName(policy.Group, policy.Role, i))
			}
		}
	}
	return &call, c.policy.calls.put(ctx, call)
}

// added stores the result of an expected addition.
func (c *hookCalls) added(ctx context.Context, call domain.HookCall, to int) error {
	if to <= call.From {
		return c.remove(ctx, call.ID)
	}
	call.Carried, call.To = true, to
	call.Members = call.Members[:min(to-call.From, len(call.Members))]
	return c.put(ctx, call)
}

// recoverAdditions finds out which expected additions took place without that being stored.
func (s *scaler) recoverAdditions(ctx context.Context, f *followed, observation reconcile.Observation) (failed error) {
	last := observation.Groups[f.document.Spec.Group].Scaled[f.document.Spec.Role]
	for _, call := range f.calls.of(domain.AfterAddition) {
		if call.Carried {
			continue
		}
		to := call.From
		if last.At.Equal(call.At) && last.From == call.From {
			to = last.To
		}
		failed = errors.Join(failed, f.calls.added(ctx, call, to))
	}
	return failed
}

// hooked is the result of an after_addition hook; call is nil if there was nothing to call it for.
type hooked struct {
	policy *followed
	call   *domain.HookCall
	// count is the role's count after that.
	count int
	err   error
}

// startAdditionHook calls the hook about added members in a goroutine, unless that is in progress. The result
// goes to the loop.
func (s *scaler) startAdditionHook(ctx context.Context, f *followed) {
	if f.idle || f.stopAdditionHook != nil || !slices.ContainsFunc(f.calls.of(domain.AfterAddition), isCarried) {
		return
	}
	policy := f.document.Spec
	calling, stop := context.WithCancel(ctx)
	f.stopAdditionHook = stop
	go func() {
		defer stop()
		t := s.runAdditionHook(calling, f, policy)
		select {
		case s.hooked <- t:
		case <-ctx.Done():
		}
	}()
}

func isCarried(call domain.HookCall) bool { return call.Carried }

// runAdditionHook calls the hook about the first addition whose members run, and forgets additions whose members are
// gone.
func (s *scaler) runAdditionHook(ctx context.Context, f *followed, policy domain.AutoscalingPolicy) hooked {
	for wait := s.hookPace.first; ; wait = min(2*wait, s.hookPace.longest) {
		snapshot := s.reconciler
		snapshot.Engine = s.reconciler.Engine.Snapshot()
		observation, err := snapshot.Observation(ctx)
		waiting := err != nil
		for _, call := range f.calls.of(domain.AfterAddition) {
			if !call.Carried {
				continue
			}
			run := err == nil && arrived(observation, policy, &call)
			switch {
			case policy.Hooks.AfterAddition == nil, err == nil && call.To <= call.From:
				waiting = s.forgetCall(ctx, f, call) != nil || waiting
			case run || call.AtWork():
				return s.callAdditionHook(ctx, f, policy, call)
			default:
				waiting = true
			}
		}
		if !waiting || ctx.Err() != nil {
			return hooked{policy: f}
		}
		pause(ctx, wait)
	}
}

// arrived reports whether the members of an addition run. Members that were removed since are dropped from it.
func arrived(observation reconcile.Observation, policy domain.AutoscalingPolicy, call *domain.HookCall) bool {
	standing := observation.Standing(policy.Group, policy.Role)
	if call.Members == nil {
		call.To = min(call.To, standing.Count)
		return standing.Ready >= call.To
	}
	doc, running := observation.Groups[policy.Group], map[string]bool{}
	for _, o := range observation.Members[policy.Group] {
		running[o.Name] = o.State == domain.StateRunning && o.Run >= doc.MinRun
	}
	declared := map[string]bool{}
	for _, i := range doc.Indexes(policy.Role) {
		declared[domain.MemberName(policy.Group, policy.Role, i)] = true
	}
	call.Members = slices.DeleteFunc(slices.Clone(call.Members), func(name string) bool { return !declared[name] })
	call.To = call.From + len(call.Members)
	return !slices.ContainsFunc(call.Members, func(name string) bool { return !running[name] })
}

// callAdditionHook calls the hook about one addition, and forgets the addition whatever the result. If that can't be
// stored, only storing it is tried again.
func (s *scaler) callAdditionHook(
	ctx context.Context, f *followed, policy domain.AutoscalingPolicy, call domain.HookCall,
) hooked {
	err := s.callHook(ctx, f, policy, &call)
	if ctx.Err() != nil {
		return hooked{policy: f} // the next controller continues
	}
	t := hooked{f, &call, call.To, err}
	for wait := s.hookPace.first; f.calls.remove(ctx, call.ID) != nil; wait = min(2*wait, s.hookPace.longest) {
		if pause(ctx, wait); ctx.Err() != nil {
			return hooked{policy: f}
		}
	}
	if group, err := engine.Get[domain.GroupDocument](ctx, s.reconciler.Engine, policy.Group); err == nil {
		t.count = group.Counts[policy.Role]
	}
	return t
}

// finishAdditionHook records the result of an after_addition hook, and continues with the next addition.
func (s *scaler) finishAdditionHook(ctx context.Context, t hooked, now time.Time) {
	f := t.policy
	f.stopAdditionHook = nil
	key := f.document.Spec.Key()
	if s.followed[key] != f {
		return
	}
	if t.call != nil {
		e := autoscale.Entry{
			Policy: key, At: now, Until: now, Decisions: 1, From: t.count, To: t.count, Ready: t.count,
			Outcome: autoscale.OutcomeUnchanged,
			OutcomeWhy: fmt.Sprintf("hook after_addition has finished for change %s, %d → %d", t.call.ID, t.call.From,
				t.call.To), Change: t.call.ID,
		}
		if t.err != nil {
			who := "the added members"
			if len(t.call.Members) > 0 {
				who = strings.Join(t.call.Members, ", ")
			}
			e.Outcome, e.OutcomeWhy = autoscale.OutcomeFailed,
				fmt.Sprintf("hook after_addition failed for %s, which stay: %v", who, t.err)
			s.log.Error("hook after_addition failed; the added members stay", "policy", key, "change", t.call.ID,
				"error", t.err)
		}
		s.history.Add(e)
	}
	s.startAdditionHook(ctx, f)
}
