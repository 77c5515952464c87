package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// nodeIs and nodeIsNot are the prefixes of constraints on one node, nodeLabel of those on a node's label.
const (
	nodeIs    = "node.id=="
	nodeIsNot = "node.id!="
	nodeLabel = "node.labels."
	// nowhere is the constraint of stopped members: no node meets it.
	nowhere = nodeIs + "nowhere"
)

// constraintsOf returns the constraints on the nodes that may run a member. For a pooled one, each node that is not the
// cluster's is excluded separately, as constraints have no "or".
func constraintsOf(spec domain.MemberSpec, in Target) ([]string, error) {
	if spec.Scheduling != domain.SchedulingEngine {
		id, found := in.Nodes[spec.Host]
		if !found {
			return nil, fmt.Errorf("member %q: host %q is not a node of the Swarm", spec.Name, spec.Host)
		}
		return []string{nodeIs + id}, nil
	}
	var constraints []string
	for _, key := range slices.Sorted(maps.Keys(spec.Placement.Labels)) {
		constraints = append(constraints, nodeLabel+key+"=="+spec.Placement.Labels[key])
	}
	allowed := map[string]bool{}
	for _, host := range spec.Placement.Hosts {
		id, found := in.Nodes[host]
		if !found {
			return nil, fmt.Errorf("members of role %q: host %q is not a node of the Swarm", spec.Role, host)
		}
		allowed[id] = true
	}
	if len(allowed) == 1 {
		for id := range allowed {
			return append(constraints, nodeIs+id), nil
		}
	}
	excluded := slices.Clone(in.Others)
	for _, id := range in.Nodes {
		if len(allowed) > 0 && !allowed[id] {
			excluded = append(excluded, id)
		}
	}
	slices.Sort(excluded)
	for _, id := range slices.Compact(excluded) {
		constraints = append(constraints, nodeIsNot+id)
	}
	return constraints, nil
}

// PinnedNode returns the ID of the only node that a service may be on, or "".
func PinnedNode(spec swarm.ServiceSpec) string {
	for _, constraint := range constraintsIn(spec) {
		if id, isPin := pin(constraint); isPin && constraint != nowhere {
			return id
		}
	}
	return ""
}

// Repin pins a service to the node that its host is now, instead of the given former one, and reports whether that is a
// change. Changes by others are kept.
func Repin(live swarm.ServiceSpec, formerly string, hosts map[string]string) (swarm.ServiceSpec, bool) {
	r, found := RecordOf(live)
	now, joined := hosts[r.Host]
	if !found || !joined || now == formerly || PinnedNode(live) != formerly {
		return live, false
	}
	follow := func(constraints []string) []string {
		followed := slices.Clone(constraints)
		for i, constraint := range followed {
			if compact(constraint) == nodeIs+formerly {
				followed[i] = nodeIs + now
			}
		}
		return followed
	}
	next := live
	placement := *live.TaskTemplate.Placement
	placement.Constraints = follow(placement.Constraints)
	next.TaskTemplate.Placement = &placement
	r.Constraints = follow(r.Constraints)
	next.Labels = maps.Clone(live.Labels)
	r.put(&next)
	return next, true
}

// KeepOff returns a placement that also excludes these nodes. The nodes are sorted, so that the next start of the
// controller finds nothing to change.
func KeepOff(placement *swarm.Placement, nodes []string) *swarm.Placement {
	var next swarm.Placement
	if placement != nil {
		next = *placement
	}
	next.Constraints = slices.Clone(next.Constraints)
	for _, node := range nodes {
		next.Constraints = append(next.Constraints, nodeIsNot+node)
	}
	slices.Sort(next.Constraints)
	next.Constraints = slices.Compact(next.Constraints)
	return &next
}

// constraintsIn returns the constraints of a service without spaces around their operators.
func constraintsIn(spec swarm.ServiceSpec) []string {
	if spec.TaskTemplate.Placement == nil {
		return nil
	}
	var constraints []string
	for _, constraint := range spec.TaskTemplate.Placement.Constraints {
		constraints = append(constraints, compact(constraint))
	}
	return constraints
}

// compact returns a constraint without spaces around its operator.
func compact(constraint string) string {
	for _, operator := range []string{"==", "!="} {
		if key, value, found := strings.Cut(constraint, operator); found {
			return strings.TrimSpace(key) + operator + strings.TrimSpace(value)
		}
	}
	return constraint
}

// pin returns the only node that a constraint admits.
func pin(constraint string) (node string, isPin bool) { return strings.CutPrefix(constraint, nodeIs) }

// labelOf returns the node label that a constraint requires.
func labelOf(constraint string) (key, value string, isLabel bool) {
	key, value, isEqual := strings.Cut(constraint, "==")
	key, isLabel = strings.CutPrefix(key, nodeLabel)
	return key, value, isLabel && isEqual
}

// Admits reports whether a service's constraints admit a node with these labels, considering only the kinds of
// constraints that are rendered.
func Admits(service swarm.ServiceSpec, node string, labels map[string]string) bool {
	for _, constraint := range constraintsIn(service) {
		if only, isPin := pin(constraint); isPin && only != node {
			return false
		}
		if strings.TrimPrefix(constraint, nodeIsNot) == node {
			return false
		}
		if key, value, isLabel := labelOf(constraint); isLabel && labels[key] != value {
			return false
		}
	}
	return true
}
