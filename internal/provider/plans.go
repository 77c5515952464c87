package provider

import (
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// plans remembers what one run of Terraform has planned and not applied yet, so that a group can be checked against
// a cluster that is still to be created or changed, and against the other groups that are.
type plans struct {
	mu       sync.Mutex
	clusters map[clusterID]plannedCluster
	groups   map[clusterID]map[string]domain.GroupDocument
	// deciding is held from the look at the planned groups to the addition of another.
	deciding sync.Mutex
}

// plannedCluster is the specification that a cluster will have; it is not settled where parts of it become known
// only during the apply.
type plannedCluster struct {
	spec    domain.Cluster
	settled bool
}

func newPlans() *plans {
	return &plans{clusters: map[clusterID]plannedCluster{}, groups: map[clusterID]map[string]domain.GroupDocument{}}
}

func (p *plans) putCluster(id clusterID, planned plannedCluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clusters[id] = planned
}

func (p *plans) cluster(id clusterID) (planned plannedCluster, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found = p.clusters[id]
	return planned, found
}

// dropCluster forgets a plan that was carried out: from now on the cluster's document tells.
func (p *plans) dropCluster(id clusterID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clusters, id)
}

// putGroup remembers the document that a group will have.
func (p *plans) putGroup(id clusterID, name string, planned domain.GroupDocument) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups[id] == nil {
		p.groups[id] = map[string]domain.GroupDocument{}
	}
	p.groups[id][name] = planned
}

// putLeaving remembers that a group will be destroyed: its document will hold nothing.
func (p *plans) putLeaving(id clusterID, name string) {
	p.putGroup(id, name, domain.GroupDocument{})
}

// dropGroup forgets a plan that was carried out, or failed.
func (p *plans) dropGroup(id clusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups[id], name)
}

// foresee lays the planned groups of a cluster over the view of it as it is. The group for which that is done keeps
// its own document, unless it is new: then whatever has its name will be gone before it is created.
func (p *plans) foresee(id clusterID, view *reconcile.View, group string, created bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if view.Groups == nil {
		view.Groups = map[string]domain.GroupDocument{}
	}
	for name, planned := range p.groups[id] {
		if name == group {
			continue
		}
		release(view, name)
		view.Groups[name] = planned
	}
	if created {
		release(view, group)
	}
}

// release takes a group out of a view, with the ports on which its members listen.
func release(view *reconcile.View, group string) {
	for _, assigned := range view.Groups[group].Assignments {
		address := view.Inventory.Hosts[assigned.Host].Address
		if busy, found := view.Inventory.BusyPorts[address]; found {
			view.Inventory.BusyPorts[address] = slices.DeleteFunc(slices.Clone(busy), func(port int) bool { return port == assigned.Port })
		}
	}
	delete(view.Groups, group)
}
