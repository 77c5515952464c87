//go:build linux

package nodes

import (
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// bySwarm ignores what the Swarm itself writes to a node.
var bySwarm = cmpopts.IgnoreFields(swarm.Node{}, "Meta", "Status")

// swarmByHand creates a Swarm of the first two nodes by hand, and returns a function that ends it.
func (s site) swarmByHand() (end func()) {
	first, second := s.bed.Nodes[0], s.bed.Nodes[1]
	_, err := first.Client().SwarmInit(s.ctx,
		swarm.InitRequest{ListenAddr: listenAddress, AdvertiseAddr: first.Address.String()})
	swarmtest.Must(s.T, err)
	is, err := first.Client().SwarmInspect(s.ctx)
	swarmtest.Must(s.T, err)
	swarmtest.Must(s.T, second.Join(s.ctx, swarm.JoinRequest{
		ListenAddr: listenAddress, JoinToken: is.JoinTokens.Worker,
		RemoteAddrs: []string{first.Address.String() + ":2377"},
	}))
	swarmtest.Must(s.T, s.bed.Await(s.ctx, second, swarm.NodeStateReady))
	return func() {
		swarmtest.Must(s.T, second.Client().SwarmLeave(s.ctx, true))
		swarmtest.Must(s.T, first.Client().SwarmLeave(s.ctx, true))
		s.bare(s.bed.Nodes...)
	}
}

// adopted adopts a Swarm, which stays as it is.
func (s site) adopted() {
	first := s.bed.Nodes[0]
	_, problems, err := s.open(first.Host()).Complete(s.ctx,
		domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Endpoint: first.Host()})
	swarmtest.Must(s.T, err)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "endpoint: No Swarm") {
		s.Errorf("without a Swarm: %v", err)
	}

	defer s.swarmByHand()()
	// One network takes the subnet of the cluster's name, and another would overlap with a declared one.
	taken, err := first.Client().NetworkCreate(s.ctx, "theirs", network.CreateOptions{
		Driver: "overlay", IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.111.64.0/24"}}},
	})
	swarmtest.Must(s.T, err)
	defer func() { swarmtest.Must(s.T, first.Client().NetworkRemove(s.ctx, taken.ID)) }()
	acctest.Eventually(s, "the network to have its subnet", func() bool {
		theirs, err := first.Client().NetworkInspect(s.ctx, taken.ID, network.InspectOptions{})
		return err == nil && len(theirs.IPAM.Config) > 0
	})
	e := s.open(first.Host())
	_, problems, err = e.Complete(s.ctx, domain.Cluster{
		Name: "lab", Engine: dockerapi.EngineName, Endpoint: first.Host(),
		Network: &domain.Network{Subnet: "10.111.0.0/16"},
	})
	swarmtest.Must(s.T, err)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(),
		"network.subnet: Subnet in use: 10.111.0.0/16 overlaps with network theirs (10.111.64.0/24)") {
		s.Errorf("a subnet in use: %v", err)
	}
	before := s.nodes()
	formed := s.apply(e, nil)
	if names := formed.HostNames(); !slices.Equal(names, []string{"node1", "node2"}) || formed.Hosts["node1"].Joined ||
		formed.Network.Subnet != "10.113.144.0/20" {
		s.Errorf("adopted %+v with the network %+v", formed.Hosts, formed.Network)
	}
	s.settled(e, nil)
	// Subnets that the Swarm chooses itself don't overlap with the cluster's network.
	theirs, err := first.Client().NetworkCreate(s.ctx, "chosen", network.CreateOptions{Driver: "overlay"})
	swarmtest.Must(s.T, err)
	swarmtest.Must(s.T, first.Client().NetworkRemove(s.ctx, theirs.ID))

	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	if diff := cmp.Diff(before, s.nodes(), bySwarm); diff != "" {
		s.Errorf("the nodes became others (-before +after):\n%s", diff)
	}
	networks, err := first.Client().NetworkList(s.ctx, network.ListOptions{})
	swarmtest.Must(s.T, err)
	if _, found := dockerapi.OwnNetwork(networks, "lab"); found {
		s.Error("the cluster's network is left")
	}
}

// joined: a host joins somebody else's Swarm by an apply that dies before it has stored that.
func (s site) joined() {
	defer s.swarmByHand()()
	first, third := s.bed.Nodes[0], s.bed.Nodes[2]
	hosts := map[string]domain.Host{
		"node1": {Labels: map[string]string{"rack": "1"}}, "node2": {}, "node3": {Address: third.Host()},
	}
	e := s.open(first.Host())
	completed, problems, err := e.Complete(s.ctx,
		domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts})
	swarmtest.Must(s.T, err)
	swarmtest.Must(s.T, problems.Err())
	_, err = e.Form(s.ctx, completed)
	swarmtest.Must(s.T, err)

	again := s.apply(s.open(first.Host()), hosts)
	if !again.Hosts["node3"].Joined || again.Hosts["node1"].Joined || again.Hosts["node2"].Joined {
		s.Errorf("joined are %+v", again.Hosts)
	}
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	nodes := s.nodes()
	if names := slices.Sorted(maps.Keys(nodes)); !slices.Equal(names, []string{"node1", "node2"}) ||
		len(nodes["node1"].Spec.Labels) > 0 {
		s.Errorf("left are %v, node1 with the labels %v", names, nodes["node1"].Spec.Labels)
	}
	is, err := first.Client().SwarmInspect(s.ctx)
	swarmtest.Must(s.T, err)
	if len(is.Spec.Labels) > 0 {
		s.Errorf("the Swarm is left with the labels %v", is.Spec.Labels)
	}
}
