package reconcile

import (
	"context"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// Yielders are the policies of a cluster whose roles may have to yield to higher priorities.
type Yielders struct {
	Policies map[string]domain.AutoscalingPolicyDocument
	// Stays are the counts that roles can't go below at the moment, by policy key.
	Stays map[string]Stay
}

// Stay is a count that a role can't go below, and why.
type Stay struct {
	Count int
	Why   string
}

// stays returns how many members a policy keeps no matter who waits, and why, if that is more than its min.
func (y Yielders) stays(doc domain.AutoscalingPolicyDocument, count int) Stay {
	policy := doc.Spec
	why := ""
	switch {
	case doc.Ending:
		why = "its policy is ending"
	case policy.DryRun:
		why = "its policy is a dry run"
	case policy.Paused == domain.PauseAll, policy.Paused == domain.PauseIn:
		why = "its policy is paused"
	case policy.ScaleIn.Select == domain.SelectDisabled:
		why = "its policy never scales in"
	}
	if why != "" {
		return Stay{count, why}
	}
	if stay, known := y.Stays[policy.Key()]; known && stay.Count > policy.Min {
		return stay
	}
	return Stay{Count: policy.Min}
}

// elastic is a role under a policy, with the members that it can do without.
type elastic struct {
	placement.Holding

	group string
	stay  Stay
}

// elastics returns the roles that have more members than their policies' min.
func (v View) elastics(y Yielders) []elastic {
	var found []elastic
	for _, key := range slices.Sorted(maps.Keys(y.Policies)) {
		policy := y.Policies[key].Spec
		doc, there := v.Groups[policy.Group]
		role, declared := doc.Spec.Roles[policy.Role]
		count := doc.Counts[policy.Role]
		if !there || !declared || role.Replicas != nil || count <= policy.Min {
			continue
		}
		stay := y.stays(y.Policies[key], count)
		if v.scattered(doc.Spec, policy.Role) {
			stay = Stay{count, "the engine chooses which members to remove, and may free another host"}
		}
		order := Scaling{Group: policy.Group, Role: policy.Role}.order(v.Traits, doc, doc.Indexes(policy.Role))
		slices.Reverse(order)
		members := make([]string, len(order))
		for i, index := range order {
			members[i] = domain.MemberName(policy.Group, policy.Role, index)
		}
		found = append(found, elastic{group: policy.Group, stay: stay, Holding: placement.Holding{
			Key: key, Priority: doc.Spec.Priority, Least: min(stay.Count, count), Members: members,
			InOrder: v.goInOrder(doc, policy),
		}})
	}
	return found
}

// scattered reports whether the engine chooses which members of a role are removed, among several hosts, so that it is
// unknown which host that frees.
func (v View) scattered(group domain.Group, role string) bool {
	hosts := 0
	for name, host := range v.Inventory.Hosts {
		if placement.Allows(group.Roles[role].Placement, name, host) {
			hosts++
		}
	}
	return hosts > 1 && SchedulingOf(v.Traits, group, role) == domain.SchedulingEngine
}

// goInOrder reports whether a role only removes the members with the highest indexes. Other roles remove
// those whose room is needed.
func (v View) goInOrder(doc domain.GroupDocument, policy domain.AutoscalingPolicy) bool {
	return topology.HasIdentity(doc.Spec, policy.Role) || SchedulingOf(v.Traits, doc.Spec,
		policy.Role) == domain.SchedulingEngine || policy.Guards.Remove == domain.RemoveHighestIndex
}

// below returns the roles of lower priority, without the members that are being removed already.
func below(roles []elastic, priority int, gone map[string]bool) []placement.Holding {
	var holdings []placement.Holding
	for _, r := range roles {
		if r.Priority < priority {
			h := r.Holding
			h.Members = slices.DeleteFunc(slices.Clone(h.Members), func(member string) bool { return gone[member] })
			holdings = append(holdings, h)
		}
	}
	return holdings
}

// Yielders reads which roles may have to yield. A group that can't be scaled at present does not yield, either.
func (r Reconciler) Yielders(ctx context.Context) (Yielders, error) {
	policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, r.Engine)
	y := Yielders{Policies: policies, Stays: map[string]Stay{}}
	if err != nil || len(policies) == 0 {
		return y, err
	}
	observation, err := r.Observation(ctx)
	if err != nil && observation.Groups == nil {
		return y, err
	}
	for key, doc := range policies {
		standing := observation.Standing(doc.Spec.Group, doc.Spec.Role)
		if standing.Held != "" && !observation.Groups[doc.Spec.Group].Scaling {
			y.Stays[key] = Stay{standing.Count, standing.Held}
		}
	}
	return y, nil
}
