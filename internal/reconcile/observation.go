package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Observation is what is known of a cluster's groups at one moment.
type Observation struct {
	Groups map[string]domain.GroupDocument
	// Members are the observed members by group. A group that could not be observed is missing.
	Members map[string][]domain.Observed

	traits engine.Traits
	hosts  map[string]domain.Host
	lost   map[string]string
	// groupStates are the states of the groups, computed on first use.
	groupStates map[string]func() groupState
}

// Observation reads the state of the groups, in a constant number of engine calls. Groups that could not be read are
// left out, and reported in the error.
func (r Reconciler) Observation(ctx context.Context) (Observation, error) {
	observation := Observation{traits: r.Engine.Traits()}
	var err error
	if observation.Groups, err = engine.List[domain.GroupDocument](ctx, r.Engine); err != nil ||
		len(observation.Groups) == 0 {
		return observation, err
	}
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return Observation{}, err
	}
	observation.hosts = cluster.Spec.Hosts
	var unread error
	observation.Members, unread = r.observeAll(ctx, observation.Groups)
	observation.lost, err = r.lostHosts(ctx, cluster.Spec,
		slices.Concat(slices.Collect(maps.Values(observation.Members))...))
	observation.groupStates = make(map[string]func() groupState, len(observation.Members))
	for name := range observation.Members {
		observation.groupStates[name] = sync.OnceValue(func() groupState { return observation.groupState(name) })
	}
	return observation, errors.Join(unread, err)
}

// groupState is the state that all roles of a group share; it is computed once for all policies.
type groupState struct {
	// ready is the number of running members by role; held is why no count can be changed, or nil.
	ready map[string]int
	held  error
}

// groupState returns the state of an observed group.
func (s Observation) groupState(name string) groupState {
	doc, observed := s.Groups[name], s.Members[name]
	ready := make(map[string]int, len(doc.Counts))
	for i := range observed {
		if o := &observed[i]; o.State == domain.StateRunning && o.Run >= doc.MinRun {
			ready[o.Role]++
		}
	}
	group := Group{Decision: Current(s.traits, s.hosts, doc), Observed: observed}
	// Whether members run the present specification does not matter here, and would take the hashes of all.
	group.Progress = group.Rule().Progress(group.names(), doc.MinRun, observed)
	return groupState{ready, group.heldBack(s.hosts, s.lost)}
}

// Standing is the state of a role that a policy scales.
type Standing struct {
	// Count is the number of members that it should have; Ready is how many of them run.
	Count, Ready int
	// Held is why its count can't be changed at the moment, or "".
	Held string
}

// Standing returns the state of a role of a group.
func (s Observation) Standing(name, role string) Standing {
	doc, found := s.Groups[name]
	groupState, seen := s.groupStates[name]
	switch {
	case !found:
		return Standing{Held: fmt.Sprintf("there is no group %q", name)}
	case !seen:
		return Standing{Count: doc.Counts[role], Held: fmt.Sprintf("the members of group %q can't be observed", name)}
	}
	group := groupState()
	standing := Standing{Count: doc.Counts[role], Ready: min(group.ready[role], doc.Counts[role])}
	if doc.Scaling {
		standing.Held = "the last count change is still in progress"
	} else if err := cmp.Or(roleHeldBack(doc, role), group.held); err != nil {
		standing.Held = err.Error()
	}
	return standing
}
