package dockerapi

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestHostOfNode: a cluster's hosts go by the names that it declares, any others by those of their machines.
func TestHostOfNode(t *testing.T) {
	node := func(id, machine string) swarm.Node {
		return swarm.Node{ID: id, Description: swarm.NodeDescription{Hostname: machine}}
	}
	nodes := NewNodes([]swarm.Node{node("n1", "ip-1"), node("n2", "IP-2"), node("n3", "gpu1")})
	declared := HostsOf(domain.Cluster{Hosts: map[string]domain.Host{
		"gpu1": {ID: "n1"}, "gone": {ID: "n0"}, "joins": {},
	}})
	got := map[string]string{}
	for _, id := range []string{"n0", "n1", "n2", "n3", "n4", ""} {
		got[id] = nodes.Host(id, declared)
	}
	want := map[string]string{"n0": "gone", "n1": "gpu1", "n2": "ip-2", "n3": "gpu1", "n4": "", "": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts by node (-want +got):\n%s", diff)
	}
}

// TestNodeOf: a host keeps its node, unless its machine left the Swarm and joined it as another node.
func TestNodeOf(t *testing.T) {
	is := func(id, name string, state swarm.NodeState) swarm.Node {
		return swarm.Node{
			ID: id, Description: swarm.NodeDescription{Hostname: name}, Status: swarm.NodeStatus{State: state},
		}
	}
	const ready, down = swarm.NodeStateReady, swarm.NodeStateDown
	stored := map[string]domain.Host{"gpu1": {ID: "old"}, "gpu2": {ID: "second"}}
	for name, c := range map[string]struct {
		hosts map[string]domain.Host
		nodes []swarm.Node
		want  string
	}{
		"by its ID":        {stored, []swarm.Node{is("old", "ubuntu", ready)}, "old"},
		"by its name":      {nil, []swarm.Node{is("new", "GPU1", ready)}, "new"},
		"gone":             {stored, []swarm.Node{is("new", "gpu1", ready)}, "new"},
		"down":             {stored, []swarm.Node{is("old", "gpu1", down)}, "old"},
		"joined again":     {stored, []swarm.Node{is("old", "gpu1", down), is("new", "gpu1", ready)}, "new"},
		"another is there": {stored, []swarm.Node{is("old", "gpu1", ready), is("new", "gpu1", ready)}, "old"},
		"joined again, and left": {
			stored, []swarm.Node{is("old", "gpu1", down), is("new", "gpu1", down)}, "old",
		},
		"two may be it": {
			stored, []swarm.Node{is("old", "gpu1", down), is("new", "gpu1", ready), is("b", "gpu1", ready)}, "old",
		},
		"another host's": {stored, []swarm.Node{is("old", "gpu1", down), is("second", "gpu1", ready)}, "old"},
		"machines share a name": {
			stored, []swarm.Node{is("old", "ubuntu", down), is("new", "ubuntu", ready)}, "old",
		},
	} {
		if node, _ := NodeOf(c.nodes, c.hosts, "gpu1"); node.ID != c.want {
			t.Errorf("%s: the node is %q, not %q", name, node.ID, c.want)
		}
	}
}
