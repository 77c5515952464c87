package nodes

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// action is what a step does. The actions are in the order in which steps are taken: new managers before demotions.
type action int

const (
	initialise action = iota
	joinManager
	joinWorker
	removeNetwork
	createNetwork
	amend // a node's labels, its availability, its promotion to a manager
	demote
	takeOut
)

// step is one change on the way from the current state to the cluster.
type step struct {
	do action
	// host and spec are the name and specification of the host: the zero one, except for the address, if it is no
	// longer one.
	host string
	spec domain.Host
	// node is the host's; empty before it joins.
	node swarm.Node
	// rejoins means that the host's Engine takes itself for a node of a Swarm, which it has to leave first.
	rejoins bool
	// network is the network to create, or the one that replaces the network to remove.
	network domain.Network
}

// manages reports whether the step adds a manager.
func (s step) manages() bool {
	return s.do == initialise || s.do == joinManager || s.do == amend && s.promotes()
}

func (s step) promotes() bool {
	return s.node.ID != "" && !dockerapi.IsManager(s.node) && s.spec.Role == domain.HostManager
}

// hostSteps returns the steps that make the nodes match the hosts' specifications. If first is not empty, a Swarm is
// created there.
func (f *facts) hostSteps(cluster domain.Cluster, first string) []step {
	var steps []step
	matched := map[string]bool{}
	for _, name := range cluster.HostNames() {
		host := cluster.Hosts[name]
		node, found := f.find(name)
		matched[node.ID] = true
		s := step{host: name, spec: host, node: node}
		if !found {
			s.do = joinWorker
			switch {
			case name == first:
				s.do = initialise
			case host.Role == domain.HostManager:
				s.do = joinManager
			}
			s.rejoins = f.engines[name].info.Swarm.LocalNodeState != swarm.LocalNodeStateInactive
			steps = append(steps, s)
			if len(host.Labels) > 0 {
				s.do = amend
				steps = append(steps, s)
			}
			continue
		}
		if !reflect.DeepEqual(nodeSpec(node.Spec, cluster.Name, host), node.Spec) {
			s.do = amend
			steps = append(steps, s)
		}
		if host.Role == domain.HostWorker && dockerapi.IsManager(node) {
			s.do = demote
			steps = append(steps, s)
		}
	}
	return append(steps, f.formerSteps(cluster, matched)...)
}

// formerSteps returns the steps for the nodes that are not hosts of the cluster: those that Form added leave, and the
// others lose the labels that were set for the cluster.
func (f *facts) formerSteps(cluster domain.Cluster, matched map[string]bool) []step {
	former := map[string]step{}
	for name, address := range f.joined {
		node, found := f.find(name)
		if _, stays := cluster.Hosts[name]; !stays && found {
			former[node.ID] = step{host: name, spec: domain.Host{Address: address}, node: node}
		}
	}
	var steps []step
	for _, node := range f.nodes {
		s, leaves := former[node.ID]
		switch {
		case matched[node.ID]:
		case leaves:
			if dockerapi.IsManager(node) {
				s.do = demote
				steps = append(steps, s)
			}
			s.do = takeOut
			steps = append(steps, s)
		case !reflect.DeepEqual(nodeSpec(node.Spec, cluster.Name, domain.Host{}), node.Spec):
			steps = append(steps, step{do: amend, host: dockerapi.HostName(node), node: node})
		}
	}
	return steps
}

// sortSteps sorts steps into the order in which they are taken. Unreachable managers are demoted first, as that costs
// no quorum.
func sortSteps(steps []step) {
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.do, b.do), order(dockerapi.IsReachable(a.node), dockerapi.IsReachable(b.node)))
	})
}

// listSuffix is the end of the names of labels that list others.
const listSuffix = ".labels"

// ownLabels is the label of a node that lists, as JSON, which of its labels were set for a cluster. All others are left
// alone.
func ownLabels(cluster string) string { return spec.LabelPrefix + cluster + listSuffix }

// listedLabels returns the labels of a node that one of its labels lists. An unreadable list is empty, and is replaced.
func listedLabels(live swarm.NodeSpec, list string) (keys []string) {
	if json.Unmarshal([]byte(live.Labels[list]), &keys) != nil {
		return nil
	}
	return keys
}

// sharedLabels returns the labels of a node that were set for other clusters in the same Swarm.
func sharedLabels(live swarm.NodeSpec, cluster string) (keys []string) {
	for list := range live.Labels {
		if strings.HasPrefix(list, spec.LabelPrefix) && strings.HasSuffix(list, listSuffix) &&
			list != ownLabels(cluster) {
			keys = append(keys, listedLabels(live, list)...)
		}
	}
	return keys
}

// nodeSpec returns a node's specification as a host of a cluster, except for demotions. Attributes that the host omits,
// and labels that were not set for this cluster alone, are kept; the zero host removes what was set.
func nodeSpec(live swarm.NodeSpec, cluster string, host domain.Host) swarm.NodeSpec {
	next := live
	if host.Availability != "" {
		next.Availability = swarm.NodeAvailability(host.Availability)
	}
	if host.Role == domain.HostManager {
		next.Role = swarm.NodeRoleManager
	}
	own, shared := listedLabels(live, ownLabels(cluster)), sharedLabels(live, cluster)
	if len(own) == 0 && len(host.Labels) == 0 {
		return next
	}
	own = slices.DeleteFunc(own, func(key string) bool { return slices.Contains(shared, key) })
	next.Labels = map[string]string{}
	for key, value := range live.Labels {
		if !slices.Contains(own, key) && key != ownLabels(cluster) {
			next.Labels[key] = value
		}
	}
	maps.Copy(next.Labels, host.Labels)
	if len(host.Labels) > 0 {
		// A list of strings always has a JSON form.
		note, _ := json.Marshal(slices.Sorted(maps.Keys(host.Labels)))
		next.Labels[ownLabels(cluster)] = string(note)
	}
	return next
}

// order sorts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
