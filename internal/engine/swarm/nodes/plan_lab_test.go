package nodes

import (
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// node returns a ready worker node of 4 CPUs and 8 GiB, with some changes.
func node(name string, changes ...func(*swarm.Node)) swarm.Node {
	n := swarm.Node{
		ID:   "id-" + name,
		Spec: swarm.NodeSpec{Role: swarm.NodeRoleWorker, Availability: swarm.NodeAvailabilityActive},
		Description: swarm.NodeDescription{
			Hostname: name, Resources: swarm.Resources{NanoCPUs: 4 * spec.NanoCPUs, MemoryBytes: 8192 * spec.MiB},
		},
		Status: swarm.NodeStatus{State: swarm.NodeStateReady, Addr: "192.0.2.9"},
	}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func managing(reachability swarm.Reachability) func(*swarm.Node) {
	return func(n *swarm.Node) {
		n.Spec.Role = swarm.NodeRoleManager
		n.ManagerStatus = &swarm.ManagerStatus{Reachability: reachability, Addr: "192.0.2.1:2377"}
	}
}

func withLabels(labels map[string]string) func(*swarm.Node) {
	return func(n *swarm.Node) { n.Spec.Labels = labels }
}

func state(state swarm.NodeState) func(*swarm.Node) {
	return func(n *swarm.Node) { n.Status.State = state }
}

func id(id string) func(*swarm.Node) { return func(n *swarm.Node) { n.ID = id } }

func availability(a swarm.NodeAvailability) func(*swarm.Node) {
	return func(n *swarm.Node) { n.Spec.Availability = a }
}

var (
	reachable = managing(swarm.ReachabilityReachable)
	lost      = managing(swarm.ReachabilityUnreachable)
)

// bare is the answer of an Engine of 2 CPUs and 4 GiB that is in no Swarm.
func bare(id string) answer {
	return answer{info: system.Info{
		ID: id, NCPU: 2, MemTotal: 4096 * spec.MiB, Swarm: swarm.Info{LocalNodeState: swarm.LocalNodeStateInactive},
	}}
}

// of is the answer of an Engine that is a node of some Swarm.
func of(nodeID string, managers ...string) answer {
	seen := bare("engine")
	seen.info.Swarm = swarm.Info{LocalNodeState: swarm.LocalNodeStateActive, NodeID: nodeID}
	for _, manager := range managers {
		seen.info.Swarm.RemoteManagers = append(seen.info.Swarm.RemoteManagers, swarm.Peer{NodeID: manager})
	}
	return seen
}

// lab is a cluster with these hosts on an existing network, see [labNetwork].
func lab(hosts map[string]domain.Host) domain.Cluster {
	return domain.Cluster{
		Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts, Network: &domain.Network{Subnet: "10.64.0.0/20"},
	}
}

var labNetwork = network.Summary{
	Name: "trainyard-lab", ID: "n1", Scope: "swarm", Labels: map[string]string{spec.LabelCluster: "lab"},
	IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.64.0.0/20", Gateway: "10.64.0.1"}}},
}

// words describes each step in a line.
func words(steps []step) []string {
	names := map[action]string{
		initialise: "initialise", joinManager: "join manager", joinWorker: "join worker",
		removeNetwork: "remove network",
		createNetwork: "create network", amend: "amend", demote: "demote", takeOut: "take out",
	}
	var words []string
	for _, s := range steps {
		text := strings.TrimSpace(names[s.do] + " " + s.host)
		if s.rejoins && s.do != amend {
			text += " again"
		}
		words = append(words, text)
	}
	return words
}
