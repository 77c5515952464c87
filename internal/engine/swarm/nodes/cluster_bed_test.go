//go:build linux

package nodes

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// site is a bed of nodes that are in no Swarm unless a test puts them there.
type site struct {
	*testing.T
	bed *testbed.Bed
	ctx context.Context
}

// TestCluster forms, changes and deletes clusters on real engines. Each part leaves the nodes without a Swarm, except
// the last one, which loses a node.
func TestCluster(t *testing.T) {
	t.Parallel()
	bed := testbed.New(t, testbed.Options{Nodes: 3})
	for _, part := range []struct {
		name string
		run  func(s site)
	}{
		{"life", site.life},
		{"adopted", site.adopted},
		{"joined", site.joined},
		{"leftover", site.leftover},
		{"slow", site.slow},
		{"networks", site.networks},
		{"quorum", site.quorum},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			ctx := acctest.Bounded(t)
			part.run(site{t, bed, ctx})
		})
		if !ok {
			return
		}
	}
}

// hosts returns all nodes with their addresses, and the given roles for the first ones.
func (s site) hosts(roles ...domain.HostRole) map[string]domain.Host {
	hosts := map[string]domain.Host{}
	for i, node := range s.bed.Nodes {
		host := domain.Host{Address: node.Host()}
		if i < len(roles) {
			host.Role = roles[i]
		}
		hosts[node.Name] = host
	}
	return hosts
}

func (s site) open(endpoint string) engineOf {
	s.Helper()
	return open(s.T, domain.ClusterRef{Name: "lab", Endpoint: endpoint})
}

// bare fails unless nodes are in no Swarm.
func (s site) bare(nodes ...*testbed.Node) {
	s.Helper()
	for _, node := range nodes {
		info, err := node.Client().Info(s.ctx)
		swarmtest.Must(s.T, err)
		if state := info.Swarm.LocalNodeState; state != swarm.LocalNodeStateInactive {
			s.Errorf("%s is %s", node.Name, state)
		}
	}
}

// apply plans, forms and stores the cluster, as an apply does.
func (s site) apply(e engineOf, hosts map[string]domain.Host) domain.Cluster {
	s.Helper()
	completed, problems, err := e.Complete(s.ctx,
		domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts})
	swarmtest.Must(s.T, err)
	swarmtest.Must(s.T, problems.Err())
	formed, err := e.Form(s.ctx, completed)
	swarmtest.Must(s.T, err)
	if formed.Network.Subnet != completed.Network.Subnet || formed.Endpoint != completed.Endpoint {
		s.Errorf("planned %+v, formed %+v", completed, formed)
	}
	document, err := engine.Cluster(s.ctx, e)
	if document.Revision != 0 {
		swarmtest.Must(s.T, err)
	}
	document.Spec = formed
	_, err = engine.Put(s.ctx, e, document)
	swarmtest.Must(s.T, err)
	return formed
}

// settled fails unless a plan of the same hosts finds nothing to do.
func (s site) settled(e engineOf, hosts map[string]domain.Host) {
	s.Helper()
	cluster := domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts}
	f, err := e.look(s.ctx, cluster)
	swarmtest.Must(s.T, err)
	p, err := e.decide(s.ctx, f, cluster)
	swarmtest.Must(s.T, err)
	if len(p.steps) > 0 || len(p.problems) > 0 {
		s.Errorf("a plan without change wants %v (%v)", words(p.steps), p.problems)
	}
}

// nodes returns the nodes of the Swarm by name, as the first node's Engine lists them.
func (s site) nodes() map[string]swarm.Node {
	s.Helper()
	list, err := s.bed.Nodes[0].Client().NodeList(s.ctx, swarm.NodeListOptions{})
	swarmtest.Must(s.T, err)
	nodes := map[string]swarm.Node{}
	for _, node := range list {
		nodes[node.Description.Hostname] = node
	}
	return nodes
}

// change changes a node by hand.
func (s site) change(name string, change func(*swarm.NodeSpec)) {
	s.Helper()
	acctest.EventuallyNoError(s, "a change of "+name, func() error { // the Swarm may change it meanwhile
		node := s.nodes()[name]
		change(&node.Spec)
		return s.bed.Nodes[0].Client().NodeUpdate(s.ctx, node.ID, node.Version, node.Spec)
	})
}

// managers returns the names of the reachable managers.
func (s site) managers() []string {
	s.Helper()
	nodes := s.nodes()
	maps.DeleteFunc(nodes, func(_ string, node swarm.Node) bool { return !dockerapi.IsReachable(node) })
	return slices.Sorted(maps.Keys(nodes))
}

// life tests the lifecycle of a cluster formed from nothing.
func (s site) life() {
	first := s.bed.Nodes[0]
	proxy := testbed.NewProxy(s.T, first)

	hosts := s.hosts(domain.HostManager)
	hosts["node1"] = domain.Host{Address: proxy.Host(), Role: domain.HostManager}
	hosts["node3"] = domain.Host{
		Address: hosts["node3"].Address, Labels: map[string]string{"gpu": "v100"}, Availability: domain.HostActive,
	}
	e := s.open("")
	formed := s.apply(e, hosts)
	for name, host := range formed.Hosts {
		if !host.Joined || host.ID != s.nodes()[name].ID || host.Capacity.CPUs == 0 {
			s.Errorf("%s was formed as %+v", name, host)
		}
	}
	if formed.Endpoint != proxy.Host() {
		s.Errorf("the endpoint is %s", formed.Endpoint)
	}
	if got := s.nodes()["node3"].Spec.Labels["gpu"]; got != "v100" {
		s.Errorf("node3 has the label %q", got)
	}
	manager, err := e.JoinToken(s.ctx, domain.HostManager)
	swarmtest.Must(s.T, err)
	worker, err := e.JoinToken(s.ctx, domain.HostWorker)
	swarmtest.Must(s.T, err)
	if want := []string{first.Address.String() + ":2377"}; !strings.HasPrefix(string(worker.Token), "SWMTKN-") ||
		!strings.HasPrefix(string(manager.Token), "SWMTKN-") || manager.Token == worker.Token ||
		!slices.Equal(worker.Managers, want) {
		s.Errorf("the tokens lead to %v", worker.Managers)
	}
	stored, err := json.Marshal(formed)
	swarmtest.Must(s.T, err)
	if strings.Contains(string(stored), "SWMTKN") {
		s.Errorf("a token is stored: %s", stored)
	}

	// A plan without change reads each list once, at the endpoint.
	e = s.open(formed.Endpoint)
	s.settled(e, hosts)
	proxy.Reset()
	snapshot := s.open(formed.Endpoint).snapshot()
	stored1, err := engine.Cluster(s.ctx, snapshot)
	swarmtest.Must(s.T, err)
	live, err := snapshot.Survey(s.ctx, stored1.Spec)
	swarmtest.Must(s.T, err)
	if diff := cmp.Diff(stored1.Spec, live); diff != "" {
		s.Errorf("without a change there is drift (-stored +live):\n%s", diff)
	}
	_, _, err = snapshot.Complete(s.ctx, domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts})
	swarmtest.Must(s.T, err)
	if calls := proxy.Calls(); len(calls) > 4 {
		s.Errorf("a plan without change takes %d calls: %v", len(calls), calls)
	}

	s.drift(e, hosts, stored1.Spec)
	s.roles(e, hosts)
	s.removedByHand(e, hosts, stored1.Spec)

	// A host that is no longer declared leaves.
	delete(hosts, "node2")
	s.apply(e, hosts)
	s.bare(s.bed.Nodes[1])
	if _, found := s.nodes()["node2"]; found {
		s.Error("node2 is still a node")
	}
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	s.bare(s.bed.Nodes...)
}

// leftover: an Engine that has just left another Swarm keeps its network of the same name for a while, which the apply
// waits for.
func (s site) leftover() {
	first := s.bed.Nodes[0]
	old, err := first.Client().NetworkCreate(s.ctx, spec.NetworkName("lab"),
		network.CreateOptions{Labels: map[string]string{spec.LabelCluster: "lab"}})
	swarmtest.Must(s.T, err)
	proxy := testbed.NewProxy(s.T, first)
	proxy.On(testbed.Fault{
		Match: testbed.Matching(http.MethodPost, "/networks/create"), Nth: 3,
		Do: swarmtest.Before(func() { swarmtest.Must(s.T, first.Client().NetworkRemove(s.ctx, old.ID)) }),
	})
	hosts := map[string]domain.Host{first.Name: {Address: proxy.Host(), Role: domain.HostManager}}
	e := s.open("")
	s.apply(e, hosts)
	s.settled(e, hosts)
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	s.bare(first)
}

// networks: a network of a single host conflicts with the cluster's just as one of all hosts does.
func (s site) networks() {
	hosts := s.hosts(domain.HostManager)
	e := s.open("")
	was := s.apply(e, hosts).Network.Subnet
	swarmtest.Must(s.T, s.bed.Nodes[0].Client().NetworkRemove(s.ctx, spec.NetworkName("lab")))
	worker := s.bed.Nodes[1].Client()
	_, err := worker.NetworkCreate(s.ctx, "mine",
		network.CreateOptions{IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: was}}}})
	swarmtest.Must(s.T, err)
	completed, problems, err := e.Complete(s.ctx,
		domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts})
	swarmtest.Must(s.T, err)
	swarmtest.Must(s.T, problems.Err())
	if completed.Network.Subnet == was {
		s.Errorf("the subnet is %s, which is that of a host's own network", was)
	}
	_, problems, err = e.Complete(s.ctx,
		domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: hosts, Network: &domain.Network{Subnet: was}})
	swarmtest.Must(s.T, err)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "network mine of host node2") {
		s.Errorf("a subnet that a host uses: %v", err)
	}
	swarmtest.Must(s.T, worker.NetworkRemove(s.ctx, "mine"))
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	s.bare(s.bed.Nodes...)
}

// drift of declared attributes is detected, and corrected.
func (s site) drift(e engineOf, hosts map[string]domain.Host, stored domain.Cluster) {
	s.change("node3", func(spec *swarm.NodeSpec) {
		spec.Labels["gpu"], spec.Labels["theirs"] = "other", "1"
		spec.Availability = swarm.NodeAvailabilityPause
	})
	s.change("node2", func(spec *swarm.NodeSpec) { spec.Availability = swarm.NodeAvailabilityPause })
	swarmtest.Must(s.T, s.bed.Nodes[0].Client().NetworkRemove(s.ctx, spec.NetworkName("lab")))
	live, err := e.Survey(s.ctx, stored)
	swarmtest.Must(s.T, err)
	want := stored
	want.Network = nil
	want.Hosts = maps.Clone(stored.Hosts)
	third := want.Hosts["node3"]
	third.Labels, third.Availability = map[string]string{"gpu": "other"}, domain.HostPaused
	want.Hosts["node3"] = third
	if diff := cmp.Diff(want, live); diff != "" {
		s.Errorf("drift (-want +got):\n%s", diff)
	}
	inv, err := e.Inventory(s.ctx, stored)
	swarmtest.Must(s.T, err)
	if want := map[string]string{
		"node2": "host node2 is paused", "node3": "host node3 is paused",
	}; !cmp.Equal(inv.Closed, want) || len(inv.Lost) > 0 {
		s.Errorf("closed are %v, lost %v", inv.Closed, inv.Lost)
	}

	s.apply(e, hosts)
	s.settled(e, hosts)
	nodes := s.nodes()
	if spec := nodes["node3"].Spec; spec.Labels["gpu"] != "v100" || spec.Labels["theirs"] != "1" ||
		spec.Availability != swarm.NodeAvailabilityActive {
		s.Errorf("node3 was mended to %+v", spec)
	}
	if spec := nodes["node2"].Spec; spec.Availability != swarm.NodeAvailabilityPause {
		s.Errorf("node2 was not declared, and became %+v", spec)
	}
	unlabelled := maps.Clone(hosts)
	unlabelled["node3"] = domain.Host{Address: hosts["node3"].Address}
	s.apply(e, unlabelled)
	if want := map[string]string{"theirs": "1"}; !cmp.Equal(s.nodes()["node3"].Spec.Labels, want) {
		s.Errorf("node3 has the labels %v", s.nodes()["node3"].Spec.Labels)
	}
}

// roles changes hosts' roles.
func (s site) roles(e engineOf, hosts map[string]domain.Host) {
	set := func(name string, role domain.HostRole) {
		host := hosts[name]
		host.Role = role
		hosts[name] = host
	}
	set("node2", domain.HostManager)
	set("node3", domain.HostManager)
	s.apply(e, hosts)
	if got := s.managers(); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
		s.Errorf("the managers are %v", got)
	}
	set("node2", domain.HostWorker)
	set("node3", domain.HostWorker)
	s.apply(e, hosts)
	if got := s.managers(); !slices.Equal(got, []string{"node1"}) {
		s.Errorf("the managers are %v", got)
	}
	s.settled(e, hosts)
}

// removedByHand removes two nodes by hand; one of the hosts doesn't know that it was removed.
func (s site) removedByHand(e engineOf, hosts map[string]domain.Host, stored domain.Cluster) {
	swarmtest.Must(s.T, s.bed.Nodes[1].Client().SwarmLeave(s.ctx, false))
	for _, name := range []string{"node2", "node3"} {
		swarmtest.Must(s.T,
			s.bed.Nodes[0].Client().NodeRemove(s.ctx, s.nodes()[name].ID, swarm.NodeRemoveOptions{Force: true}))
	}
	live, err := e.Survey(s.ctx, stored)
	swarmtest.Must(s.T, err)
	if names := live.HostNames(); !slices.Equal(names, []string{"node1"}) {
		s.Errorf("the hosts found are %v", names)
	}
	formed := s.apply(e, hosts)
	for _, name := range []string{"node2", "node3"} {
		if host := formed.Hosts[name]; host.ID == stored.Hosts[name].ID || host.ID != s.nodes()[name].ID ||
			!host.Joined {
			s.Errorf("%s came back as %+v", name, host)
		}
	}
	s.settled(e, hosts)
}
