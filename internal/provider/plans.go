package provider

import (
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// plans remembers what one run of Terraform has planned and not applied yet, so that a group can be checked against
// a cluster that is still to be created or changed, and against the GPU pools and other groups that are.
type plans struct {
	mu       sync.Mutex
	clusters map[clusterID]plannedCluster
	groups   map[clusterID]map[string]domain.GroupDocument
	pools    map[clusterID]map[string]plannedPool
	specs    map[itemAddress]plannedSpec
	policies map[policyAddress]plannedPolicy
	// deciding is held from the look at the planned groups and pools to the addition of another.
	deciding sync.Mutex
}

// plannedCluster is the specification that a cluster will have; it is not settled where parts of it become known
// only during the apply.
type plannedCluster struct {
	spec    domain.Cluster
	settled bool
}

// plannedPool is the document that a GPU pool will have; it is not settled where its devices become known only during the
// apply, and leaving where there will be none.
type plannedPool struct {
	document         domain.GPUPoolDocument
	settled, leaving bool
}

// plannedSpec is the specification that a group will have, also where it can't be decided yet where its members are. It is not known where parts of it
// become known only during the apply, and leaving where there will be no such group. One that is made anew has nothing of a group that was there before.
type plannedSpec struct {
	spec                 domain.Group
	known, leaving, anew bool
}

// plannedPolicy is what this run knows of an autoscaling policy: whether the state has it, whether the plan has it, and whether the plan has it go.
// Its specification is known where all of it is.
type plannedPolicy struct {
	spec                  domain.AutoscalingPolicy
	had, planned, leaving bool
}

func newPlans() *plans {
	return &plans{
		clusters: map[clusterID]plannedCluster{}, groups: map[clusterID]map[string]domain.GroupDocument{}, pools: map[clusterID]map[string]plannedPool{},
		specs: map[itemAddress]plannedSpec{}, policies: map[policyAddress]plannedPolicy{},
	}
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
	p.putSpec(itemAddress{id, name}, plannedSpec{leaving: true})
}

// putSpec remembers the specification that a group will have.
func (p *plans) putSpec(group itemAddress, planned plannedSpec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.specs[group] = planned
}

// spec returns the specification that a group will have, where this run has come across it.
func (p *plans) spec(group itemAddress) (planned plannedSpec, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found = p.specs[group]
	return planned, found
}

// dropGroup forgets a plan that was carried out, or failed.
func (p *plans) dropGroup(id clusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups[id], name)
	delete(p.specs, itemAddress{id, name})
}

// knowPolicy remembers that the state has a policy.
func (p *plans) knowPolicy(at policyAddress) {
	p.changePolicy(at, func(known *plannedPolicy) { known.had = true })
}

// putPolicyLeaving remembers that a policy will be destroyed.
func (p *plans) putPolicyLeaving(at policyAddress) {
	p.changePolicy(at, func(known *plannedPolicy) { known.leaving = true })
}

// putPolicy remembers the specification that a policy will have, and tells whether it is the first one that is planned for its role.
func (p *plans) putPolicy(at policyAddress, spec domain.AutoscalingPolicy) (first bool) {
	p.changePolicy(at, func(known *plannedPolicy) {
		first = !known.planned
		known.planned, known.spec = true, spec
	})
	return first
}

func (p *plans) changePolicy(at policyAddress, change func(known *plannedPolicy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.policies[at]
	change(&known)
	p.policies[at] = known
}

// policy returns what this run knows of a policy.
func (p *plans) policy(at policyAddress) plannedPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policies[at]
}

// dropPolicy forgets a plan that was carried out, or failed.
func (p *plans) dropPolicy(at policyAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.policies, at)
}

func (p *plans) putPool(id clusterID, name string, planned plannedPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools[id] == nil {
		p.pools[id] = map[string]plannedPool{}
	}
	p.pools[id][name] = planned
}

// dropPool forgets a plan that was carried out, or failed.
func (p *plans) dropPool(id clusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pools[id], name)
}

// poolIsOpen tells whether the devices of a GPU pool become known only during the apply.
func (p *plans) poolIsOpen(id clusterID, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found := p.pools[id][name]
	return found && !planned.settled && !planned.leaving
}

// foreseePools returns the GPU pools that a cluster will have, given those that it has, as far as their devices are known.
func (p *plans) foreseePools(id clusterID, pools map[string]domain.GPUPoolDocument) map[string]domain.GPUPoolDocument {
	p.mu.Lock()
	defer p.mu.Unlock()
	foreseen := map[string]domain.GPUPoolDocument{}
	maps.Copy(foreseen, pools)
	for name, planned := range p.pools[id] {
		delete(foreseen, name)
		if planned.settled {
			foreseen[name] = planned.document
		}
	}
	return foreseen
}

// foresee lays the planned groups and GPU pools of a cluster over the view of it as it is. The group for which that is done
// keeps its own document, unless it is new: then whatever has its name will be gone before it is created.
func (p *plans) foresee(id clusterID, view *reconcile.View, group string, created bool) {
	view.Pools = p.foreseePools(id, view.Pools)
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
