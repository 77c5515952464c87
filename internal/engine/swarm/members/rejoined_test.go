package members

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestMembersFollowTheirHosts: a member whose host has become another node follows it there, unless it has ended. That
// does not count as a change by somebody else, nor hide one.
func TestMembersFollowTheirHosts(t *testing.T) {
	runs := func(h *history) { h.task(2, swarm.TaskStateRunning, swarm.TaskStateRunning, 0, "") }
	cluster := domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{"gpu1": {ID: "node1"}}}
	for name, c := range map[string]struct {
		nodes  []swarm.Node
		tasks  func(h *history)
		tamper func(s *swarm.ServiceSpec)
		want   []string // the constraints afterwards, if it follows
	}{
		"the host is another node": {
			nodes: []swarm.Node{nodeOf("gpu1", "node9", swarm.NodeStateReady)}, tasks: runs,
			want: []string{"node.id==node9"},
		},
		"lost with its node": {
			nodes: []swarm.Node{nodeOf("gpu1", "node9", swarm.NodeStateReady)},
			tasks: func(h *history) { h.task(2, swarm.TaskStateShutdown, swarm.TaskStateOrphaned, 0, "") },
			want:  []string{"node.id==node9"},
		},
		"the host is gone":  {nodes: []swarm.Node{nodeOf("gpu2", "", swarm.NodeStateReady)}, tasks: runs},
		"the node is there": {nodes: []swarm.Node{nodeOf("gpu1", "node1", swarm.NodeStateDown)}, tasks: runs},
		"the host is another node, and the former one is down": {
			nodes: []swarm.Node{
				nodeOf("gpu1", "node1", swarm.NodeStateDown), nodeOf("gpu1", "node9", swarm.NodeStateReady),
			},
			tasks: runs, want: []string{"node.id==node9"},
		},
		"another machine has the host's name": {
			nodes: []swarm.Node{
				nodeOf("gpu1", "node1", swarm.NodeStateReady), nodeOf("gpu1", "node9", swarm.NodeStateReady),
			},
			tasks: runs,
		},
		"it has completed": {
			nodes: []swarm.Node{nodeOf("gpu1", "node9", swarm.NodeStateReady)},
			tasks: func(h *history) { h.task(2, swarm.TaskStateShutdown, swarm.TaskStateComplete, 0, "") },
		},
		"changed by somebody else": {
			nodes: []swarm.Node{nodeOf("gpu1", "node9", swarm.NodeStateReady)}, tasks: runs,
			tamper: func(s *swarm.ServiceSpec) {
				s.TaskTemplate.Placement = &swarm.Placement{
					Constraints: []string{"node.id == node1", "node.labels.a==b"},
				}
			},
			want: []string{"node.id==node9", "node.labels.a==b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, domain.Role{}.RestartRule(), nil)
			c.tasks(h)
			if c.tamper != nil {
				c.tamper(&h.service.Spec)
			}
			broken := spec.SealsOf([]swarm.Service{h.service})[h.service.ID].Broken
			stranded := strandedAmong([]swarm.Service{h.service}, dockerapi.TasksByService(h.tasks), c.nodes, "lab")
			var got []string
			for _, service := range stranded {
				next, changed := spec.Repin(service.Spec, spec.PinnedNode(service.Spec),
					dockerapi.NodesOf(cluster, c.nodes))
				if !changed {
					continue
				}
				got = next.TaskTemplate.Placement.Constraints
				if is := spec.SealsOf(
					[]swarm.Service{{ID: h.service.ID, Spec: next}},
				)[h.service.ID].Broken; is != broken {
					t.Errorf("it counts as changed by somebody else: %v, and before: %v", is, broken)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("constraints (-want +got):\n%s", diff)
			}
		})
	}
}

// nodeOf returns the node of a host.
func nodeOf(host, id string, state swarm.NodeState) swarm.Node {
	return swarm.Node{
		ID: id, Description: swarm.NodeDescription{Hostname: host}, Status: swarm.NodeStatus{State: state},
	}
}
