package nodes

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// quorum counts the managers of a Swarm.
type quorum struct{ managers, reachable int }

// needed is how many managers have to be reachable for the Swarm to accept changes: more than half.
func (q quorum) needed() int { return q.managers/2 + 1 }

func (q quorum) lost() bool { return q.reachable < q.needed() }

// spare is how many managers may fail.
func (q quorum) spare() int { return q.managers - q.needed() }

func quorumOf(nodes []swarm.Node) quorum {
	var q quorum
	for _, node := range nodes {
		if !dockerapi.IsManager(node) {
			continue
		}
		q.managers++
		if dockerapi.IsReachable(node) {
			q.reachable++
		}
	}
	return q
}

// checkQuorum follows the managers through the steps: a step that leaves too few of them reachable is a problem. An
// even number at the end is a warning if the number changes or the cluster is new.
func checkQuorum(ps *domain.Problems, nodes []swarm.Node, steps []step, isNew bool) {
	q := quorumOf(nodes)
	path := domain.Path{"hosts"}
	if q.managers > 0 && q.lost() {
		ps.Warn(path, "Quorum lost",
			"%d managers, %d reachable, %d needed: the Swarm accepts no changes until %s can be reached again",
			q.managers, q.reachable, q.needed(), strings.Join(unreachable(nodes, nil), ", "))
	}
	changed := isNew
	for _, s := range steps {
		switch {
		case s.manages():
			q.managers++
			q.reachable++
		case s.do == demote:
			q.managers--
			if dockerapi.IsReachable(s.node) {
				q.reachable--
			}
		default:
			continue
		}
		changed = true
		switch {
		case q.managers == 0:
			ps.Add(path, "No manager would remain",
				"host %q is the last manager of the Swarm; make another host a manager first: role = \"manager\"",
				s.host)
			return
		case q.lost():
			ps.Add(path, "Quorum would be lost",
				"%d managers, %d reachable after the change, %d needed: without a quorum the Swarm accepts no "+
					"changes. Bring back %s first, or remove them from the Swarm",
				q.managers, q.reachable, q.needed(), strings.Join(unreachable(nodes, steps), ", "))
			return
		}
	}
	if changed && q.managers > 0 && q.managers%2 == 0 {
		ps.Warn(path, "Even number of managers",
			"the Swarm will have %d managers and tolerate the loss of %d, as it would with %d. Use an odd number",
			q.managers, q.spare(), q.managers-1)
	}
}

// unreachable returns the names of the unreachable managers that remain managers.
func unreachable(nodes []swarm.Node, steps []step) []string {
	var names []string
	for _, node := range nodes {
		demoted := slices.ContainsFunc(steps, func(s step) bool { return s.do == demote && s.node.ID == node.ID })
		if dockerapi.IsManager(node) && !dockerapi.IsReachable(node) && !demoted {
			names = append(names, dockerapi.HostName(node))
		}
	}
	slices.Sort(names)
	return names
}
