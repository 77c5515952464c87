package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// staysError is the reason why members to be removed stay.
type staysError struct{ why string }

// Error returns the reason.
func (e *staysError) Error() string { return e.why }

// leaving are the members to be removed.
type leaving struct {
	// count is their number; why is the reason if that is less than asked for.
	count int
	why   string
	// members are their names, in order; there are those of them that were observed. Both are empty if the
	// engine chooses which ones.
	members, there []string
}

// leaving chooses the members to remove, in the policy's order and without busy ones.
func (s *scaler) leaving(ctx context.Context, policy domain.AutoscalingPolicy, c change) (leaving, error) {
	wanted := c.decision.From - c.decision.To
	if c.resumed != nil {
		return leaving{count: wanted, members: c.resumed.Remove, there: c.resumed.Members}, nil
	}
	working := s.working(ctx, policy, c.observation)
	if reconcile.SchedulingOf(s.reconciler.Engine.Traits(), c.observation.Groups[policy.Group].Spec,
		policy.Role) == domain.SchedulingEngine {
		return leavingAny(policy, wanted, working)
	}
	order, err := s.inOrder(ctx, policy, c.observation)
	if err != nil {
		return leaving{}, &staysError{fmt.Sprintf("it is unknown which members to remove: %v", err)}
	}
	if len(c.yields) > 0 {
		return leavingFor(c.yields, wanted, order, working)
	}
	var gone leaving
	for _, m := range order {
		if gone.count == wanted || m.chief && gone.count < len(order)-1 {
			break
		}
		if why, works := working[m.Name]; works {
			gone.why = fmt.Sprintf("%s stays: %s", m.Name, why)
			if chooses(policy.Guards.Remove) {
				continue // another one may be idle
			}
			break
		}
		gone.count++
		gone.members = append(gone.members, m.Name)
		if m.there {
			gone.there = append(gone.there, m.Name)
		}
	}
	if gone.count == 0 {
		return gone, &staysError{cmp.Or(gone.why, "no member can be removed")}
	}
	return gone, nil
}

// leavingFor returns the members whose room somebody waits for. If one of them is busy, or the chief, which goes last,
// none is removed, as removing only the others would not make enough room.
func leavingFor(yields []string, wanted int, order []candidate, working map[string]string) (leaving, error) {
	rank := func(m candidate) int {
		if at := slices.Index(yields, m.Name); at >= 0 {
			return at
		}
		return len(yields)
	}
	slices.SortStableFunc(order, func(a, b candidate) int { return cmp.Compare(rank(a), rank(b)) })
	gone := leaving{count: min(wanted, len(order))}
	for _, m := range order[:gone.count] {
		why, works := working[m.Name]
		if m.chief && gone.count < len(order) {
			why, works = "the chief is removed last", true
		}
		if works {
			return leaving{}, &staysError{fmt.Sprintf("%s stays: %s", m.Name, why)}
		}
		gone.members = append(gone.members, m.Name)
		if m.there {
			gone.there = append(gone.there, m.Name)
		}
	}
	return gone, nil
}

// leavingAny returns how many members are removed if the engine chooses them: a Swarm takes any from the hosts with the
// most. So all stay if one is busy, and no hook can be told which ones are removed.
func leavingAny(policy domain.AutoscalingPolicy, wanted int, working map[string]string) (leaving, error) {
	if policy.Hooks.BeforeRemoval != nil {
		return leaving{}, &staysError{
			"the engine chooses which members are removed, so hook before_removal can't be called with their names: leave it out",
		}
	}
	if len(working) > 0 {
		one := slices.Min(slices.Collect(maps.Keys(working)))
		return leaving{}, &staysError{
			fmt.Sprintf("all members stay, as the engine may choose %s: %s", one, working[one]),
		}
	}
	return leaving{count: wanted}, nil
}

// chooses reports whether any member may go, and not only the one with the highest index.
func chooses(order domain.RemovalOrder) bool {
	return order == domain.RemoveLeastBusy || order == domain.RemoveMostLoadedHost
}

// candidate is a member that the role should have, whether it was observed or not.
type candidate struct {
	domain.Observed

	there bool
	// chief is set for the chief, which [reconcile.Reconciler.Scale] removes only after all others.
	chief bool
}

// inOrder returns the members of a policy's role in the order of removal: by index for members with identity, and
// otherwise missing ones first. The chief is last.
func (s *scaler) inOrder(
	ctx context.Context, policy domain.AutoscalingPolicy, observation reconcile.Observation,
) ([]candidate, error) {
	observed := map[string]domain.Observed{}
	for _, o := range observation.Members[policy.Group] {
		observed[o.Name] = o
	}
	group, order := observation.Groups[policy.Group], policy.Guards.Remove
	chief := reconcile.Chief(group)
	var members []candidate
	for _, i := range slices.Backward(group.Indexes(policy.Role)) {
		name := domain.MemberName(policy.Group, policy.Role, i)
		o, there := observed[name]
		o.Name = name
		members = append(members, candidate{o, there, name == chief})
	}
	if topology.HasIdentity(group.Spec, policy.Role) {
		return members, nil
	}
	load := func(domain.Observed) float64 { return 0 }
	if chooses(order) {
		cpus, hosts, err := s.meter.Loads(ctx)
		if err != nil {
			return nil, err
		}
		load = func(o domain.Observed) float64 {
			if order != domain.RemoveLeastBusy {
				return -hosts[o.Host]
			}
			used, known := cpus[o.Name]
			if !known && o.State == domain.StateRunning {
				return math.Inf(1) // it may be the busiest
			}
			return used
		}
	}
	slices.SortStableFunc(members, func(a, b candidate) int {
		switch {
		case a.chief:
			return 1
		case b.chief:
			return -1
		case a.there && b.there:
			return cmp.Compare(load(a.Observed), load(b.Observed))
		case a.there:
			return 1
		case b.there:
			return -1
		}
		return 0
	})
	return members, nil
}

// awaitGuards waits until the guards allow a removal whose hook is done, or returns why they don't. They did before the
// hook, which may have taken long.
func (s *scaler) awaitGuards(ctx context.Context, policy domain.AutoscalingPolicy, c change, gone leaving) error {
	end := time.Now().Add(s.hookPace.lag)
	for wait := s.hookPace.first; ; wait = min(2*wait, s.hookPace.longest) {
		err := s.allowed(ctx, policy, c, gone)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || time.Now().After(end):
			return err
		}
		pause(ctx, wait)
	}
}

// allowed returns an error if the guards do not allow a removal now.
func (s *scaler) allowed(ctx context.Context, policy domain.AutoscalingPolicy, c change, gone leaving) error {
	questions := guardQuestions(policy)
	if len(questions) == 0 && policy.Guards.Busy == nil {
		return nil
	}
	snapshot := s.reconciler
	snapshot.Engine = s.reconciler.Engine.Snapshot()
	observation, err := snapshot.Observation(ctx)
	if err != nil && observation.Groups == nil {
		return err
	}
	now := time.Now()
	seen := autoscale.Seen{Now: now, Count: c.decision.From, Guards: map[string]autoscale.Measurement{}}
	for i, measured := range s.meter.Read(ctx, now, meter.Observation{
		Groups: observation.Groups, Members: observation.Members,
	}, questions) {
		seen.Guards[strings.TrimPrefix(questions[i].Metric, guardMark)] = measured
	}
	if why := c.autoscaler.Refusal(seen, c.decision.From-gone.count); why != "" {
		return &staysError{why}
	}
	working := s.working(ctx, policy, observation)
	for _, name := range gone.there {
		if why, works := working[name]; works {
			return &staysError{fmt.Sprintf("%s stays: %s", name, why)}
		}
	}
	return nil
}

// working returns why members have to stay: they are busy by the policy's guard, or can't be measured.
func (s *scaler) working(
	ctx context.Context, policy domain.AutoscalingPolicy, observation reconcile.Observation,
) map[string]string {
	stay := map[string]string{}
	guard := policy.Guards.Busy
	if guard == nil {
		return stay
	}
	for _, sign := range []struct {
		measure domain.AgentMeasure
		what    string
		least   *float64
	}{
		{domain.AgentCPUPercent, "its CPU", guard.CPUPercent},
		{domain.AgentGPUPercent, "its GPUs", guard.GPUPercent},
	} {
		if sign.least == nil {
			continue
		}
		read := s.meter.Read(ctx, time.Now(), meter.Observation{
			Groups: observation.Groups, Members: observation.Members,
		}, []meter.Question{{
			Metric: busyMetric, Group: policy.Group, Role: policy.Role,
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: sign.measure}},
		}})[0]
		for _, o := range observation.Members[policy.Group] {
			value, known := read.Members[o.Name]
			switch {
			case o.Role != policy.Role || o.State != domain.StateRunning:
			case !known:
				stay[o.Name] = fmt.Sprintf("it is unknown whether it is busy (%s)", cmp.Or(read.Why, "not measured"))
			case value >= *sign.least:
				stay[o.Name] = fmt.Sprintf("it is busy (%s at %.0f %%)", sign.what, value)
			}
		}
	}
	return stay
}
