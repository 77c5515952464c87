//go:build linux

package nodes

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// quorum is kept while a manager is down, and the cluster can be changed to leave that out.
func (s site) quorum() {
	hosts := s.hosts(domain.HostManager, domain.HostManager, domain.HostManager)
	e := s.open("")
	third := s.bed.Nodes[2]
	s.apply(e, map[string]domain.Host{"node1": hosts["node1"]})
	s.quicken()
	s.apply(e, hosts)
	swarmtest.Must(s.T, third.Kill())
	swarmtest.Must(s.T, s.bed.Await(s.ctx, third, swarm.NodeStateDown))

	fewer := maps.Clone(hosts)
	delete(fewer, "node2")
	cluster := domain.Cluster{Name: "lab", Engine: dockerapi.EngineName, Hosts: fewer}
	const want = "hosts: Quorum would be lost: 2 managers, 1 reachable after the change, 2 needed"
	_, problems, err := e.Complete(s.ctx, cluster)
	swarmtest.Must(s.T, err)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "Bring back node3 first") {
		s.Errorf("planned: %v", err)
	}
	if _, err := e.Form(s.ctx, cluster); err == nil || !strings.Contains(err.Error(), want) {
		s.Errorf("formed: %v", err)
	}
	document, err := engine.Cluster(s.ctx, e)
	swarmtest.Must(s.T, err)
	inv, err := e.Inventory(s.ctx, document.Spec)
	swarmtest.Must(s.T, err)
	if want := map[string]string{"node3": "host node3 is down"}; !cmp.Equal(inv.Lost, want) ||
		!cmp.Equal(inv.Closed, want) {
		s.Errorf("closed are %v, lost %v", inv.Closed, inv.Lost)
	}
	s.settled(e, hosts)

	delete(hosts, "node3")
	s.apply(e, hosts)
	if got := s.managers(); !slices.Equal(got, []string{"node1", "node2"}) || len(s.nodes()) != 2 {
		s.Errorf("the managers are %v", got)
	}
	swarmtest.Must(s.T, e.Dissolve(s.ctx))
	s.bare(s.bed.Nodes[:2]...)
}

// quicken has the Swarm find out sooner which of the nodes that join from now on are down, and not so soon that those
// are which a busy machine keeps silent.
func (s site) quicken() {
	s.Helper()
	at := s.bed.Nodes[0].Client()
	is, err := at.SwarmInspect(s.ctx)
	swarmtest.Must(s.T, err)
	is.Spec.Dispatcher.HeartbeatPeriod = 3 * time.Second
	swarmtest.Must(s.T, at.SwarmUpdate(s.ctx, is.Version, is.Spec, swarm.UpdateFlags{}))
}
