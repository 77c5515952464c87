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
