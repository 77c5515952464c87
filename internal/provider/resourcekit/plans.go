package resourcekit

import (
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Plans remembers what one run of Terraform has planned and not applied yet, so that a group can be checked against
// a cluster that is still to be created or changed, and against the GPU pools and other groups that are.
type Plans struct {
	mu       sync.Mutex
	clusters map[ClusterID]PlannedCluster
	groups   map[ClusterID]map[string]domain.GroupDocument
	pools    map[ClusterID]map[string]PlannedPool
	specs    map[ItemAddress]PlannedSpec
	policies map[PolicyAddress]PlannedPolicy
	sweeps   map[ItemAddress]PlannedSweep
	files    map[ItemAddress]string
	// yields are the members that give way to a planned group, by the keys of their policies.
	yields map[ItemAddress]map[string][]string
	// Deciding is held from the look at the planned groups and pools to the addition of another.
	Deciding sync.Mutex
}

// PlannedCluster is the specification that a cluster will have; it is not settled where parts of it become known
// only during the apply.
type PlannedCluster struct {
	Spec    domain.Cluster
	Settled bool
}

// PlannedPool is the document that a GPU pool will have; it is not settled where its devices become known only during
// the apply, and leaving where there will be none.
type PlannedPool struct {
	Document         domain.GPUPoolDocument
	Settled, Leaving bool
}

// PlannedSpec is the specification that a group will have, also where it can't be decided yet where its members are. It
// is not known where parts of it become known only during the apply, and leaving where there will be no such group. One
// that is made anew has nothing of a group that was there before.
type PlannedSpec struct {
	Spec                 domain.Group
	Known, Leaving, Anew bool
}

// PlannedPolicy is what this run knows of an autoscaling policy: whether the state has it, whether the plan has it, and
// whether the plan has it go. Its specification is known where all of it is.
type PlannedPolicy struct {
	Spec                  domain.AutoscalingPolicy
	Had, Planned, Leaving bool
}

// PlannedSweep is what this run knows of a sweep: it is leaving where there will be none. One that is made anew has
// nothing of a sweep that was there before.
type PlannedSweep struct{ Leaving, Anew bool }

func newPlans() *Plans {
	return &Plans{
		clusters: map[ClusterID]PlannedCluster{}, groups: map[ClusterID]map[string]domain.GroupDocument{}, pools: map[ClusterID]map[string]PlannedPool{},
		specs: map[ItemAddress]PlannedSpec{}, policies: map[PolicyAddress]PlannedPolicy{}, sweeps: map[ItemAddress]PlannedSweep{},
		files: map[ItemAddress]string{}, yields: map[ItemAddress]map[string][]string{},
	}
}

// PutCluster remembers the specification that a cluster will have.
func (p *Plans) PutCluster(id ClusterID, planned PlannedCluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clusters[id] = planned
}

// Cluster returns the specification that a cluster will have, where this run has come across it.
func (p *Plans) Cluster(id ClusterID) (planned PlannedCluster, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found = p.clusters[id]
	return planned, found
}

// DropCluster forgets a plan that was carried out: from now on the cluster's document tells.
func (p *Plans) DropCluster(id ClusterID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clusters, id)
}

// PutGroup remembers the document that a group will have.
func (p *Plans) PutGroup(id ClusterID, name string, planned domain.GroupDocument) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups[id] == nil {
		p.groups[id] = map[string]domain.GroupDocument{}
	}
	p.groups[id][name] = planned
}

// PutLeaving remembers that a group will be destroyed: its document will hold nothing.
func (p *Plans) PutLeaving(id ClusterID, name string) {
	p.PutGroup(id, name, domain.GroupDocument{})
	p.PutSpec(ItemAddress{id, name}, PlannedSpec{Leaving: true})
}

// PutSpec remembers the specification that a group will have.
func (p *Plans) PutSpec(group ItemAddress, planned PlannedSpec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.specs[group] = planned
}

// Spec returns the specification that a group will have, where this run has come across it.
func (p *Plans) Spec(group ItemAddress) (planned PlannedSpec, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found = p.specs[group]
	return planned, found
}

// DropGroup forgets a plan that was carried out, or failed.
func (p *Plans) DropGroup(id ClusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups[id], name)
	delete(p.specs, ItemAddress{id, name})
	delete(p.yields, ItemAddress{id, name})
}

// PutYields remembers which members give way to a group, by the keys of their policies: without them there is room for
// it beside their groups.
func (p *Plans) PutYields(group ItemAddress, gone map[string][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.yields[group] = gone
}

// KnowPolicy remembers that the state has a policy.
func (p *Plans) KnowPolicy(at PolicyAddress) {
	p.changePolicy(at, func(known *PlannedPolicy) { known.Had = true })
}

// PutPolicyLeaving remembers that a policy will be destroyed.
func (p *Plans) PutPolicyLeaving(at PolicyAddress) {
	p.changePolicy(at, func(known *PlannedPolicy) { known.Leaving = true })
}

// PutPolicy remembers the specification that a policy will have, and reports whether it is the first one that is
// planned for its role.
func (p *Plans) PutPolicy(at PolicyAddress, spec domain.AutoscalingPolicy) (first bool) {
	p.changePolicy(at, func(known *PlannedPolicy) {
		first = !known.Planned
		known.Planned, known.Spec = true, spec
	})
	return first
}

func (p *Plans) changePolicy(at PolicyAddress, change func(known *PlannedPolicy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.policies[at]
	change(&known)
	p.policies[at] = known
}

// Policy returns what this run knows of a policy.
func (p *Plans) Policy(at PolicyAddress) PlannedPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policies[at]
}

// DropPolicy forgets a plan that was carried out, or failed.
func (p *Plans) DropPolicy(at PolicyAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.policies, at)
}

// PutSweep remembers what will be of a sweep.
func (p *Plans) PutSweep(at ItemAddress, planned PlannedSweep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeps[at] = planned
}

// DropSweep forgets a plan that was carried out, or failed.
func (p *Plans) DropSweep(at ItemAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sweeps, at)
}

// PutFiles remembers the folder of files that are to be brought to hosts.
func (p *Plans) PutFiles(at ItemAddress, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[at] = path
}

// DropFiles forgets a plan that was carried out, or failed.
func (p *Plans) DropFiles(at ItemAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.files, at)
}

// ArrivingFiles returns the folders of files that are to be brought to the hosts of a cluster.
func (p *Plans) ArrivingFiles(id ClusterID) (paths []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, path := range p.files {
		if at.Cluster == id {
			paths = append(paths, path)
		}
	}
	return paths
}

// PutPool remembers the document that a GPU pool will have.
func (p *Plans) PutPool(id ClusterID, name string, planned PlannedPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools[id] == nil {
		p.pools[id] = map[string]PlannedPool{}
	}
	p.pools[id][name] = planned
}

// DropPool forgets a plan that was carried out, or failed.
func (p *Plans) DropPool(id ClusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pools[id], name)
}

// PoolIsOpen reports whether the devices of a GPU pool become known only during the apply.
func (p *Plans) PoolIsOpen(id ClusterID, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found := p.pools[id][name]
	return found && !planned.Settled && !planned.Leaving
}

// ForeseePools returns the GPU pools that a cluster will have, given those that it has, as far as their devices are
// known.
func (p *Plans) ForeseePools(id ClusterID, pools map[string]domain.GPUPoolDocument) map[string]domain.GPUPoolDocument {
	p.mu.Lock()
	defer p.mu.Unlock()
	foreseen := map[string]domain.GPUPoolDocument{}
	maps.Copy(foreseen, pools)
	for name, planned := range p.pools[id] {
		delete(foreseen, name)
		if planned.Settled {
			foreseen[name] = planned.Document
		}
	}
	return foreseen
}

// Foresee lays the planned groups, sweeps and GPU pools of a cluster over the view of it as it is. The group for which
// that is done keeps its own document, unless it is new: then whatever has its name will be gone before it is created.
func (p *Plans) Foresee(id ClusterID, view *reconcile.View, group string, created bool) {
	p.foresee(id, view, group)
	if created {
		release(view, view.Groups, group)
	}
}

// ForeseeForSweep is [Plans.Foresee] for a sweep. A group of its name is in its way, unless this run destroys it.
func (p *Plans) ForeseeForSweep(id ClusterID, view *reconcile.View, sweep string) {
	p.foresee(id, view, "")
	if planned, found := p.Spec(ItemAddress{id, sweep}); found && planned.Leaving {
		delete(view.Groups, sweep)
	}
}

func (p *Plans) foresee(id ClusterID, view *reconcile.View, but string) {
	view.Pools = p.ForeseePools(id, view.Pools)
	p.mu.Lock()
	defer p.mu.Unlock()
	if view.Groups == nil {
		view.Groups = map[string]domain.GroupDocument{}
	}
	for name, planned := range p.groups[id] {
		if name != but {
			release(view, view.Groups, name)
			view.Groups[name] = planned
		}
	}
	for at, gone := range p.yields {
		if at.Cluster == id && at.Name != but {
			*view = view.Yielded(gone)
		}
	}
	if view.Sweeps == nil {
		view.Sweeps = map[string]domain.GroupDocument{}
	}
	for at, planned := range p.sweeps {
		if at.Cluster != id {
			continue
		}
		if planned.Leaving || planned.Anew {
			release(view, view.Sweeps, at.Name)
		}
		if _, stored := view.Sweeps[at.Name]; !stored && !planned.Leaving {
			view.Sweeps[at.Name] = domain.GroupDocument{} // the name is taken, if by no run yet
		}
	}
}

// release takes a group, or the runs of a sweep, out of a view, with the ports on which its members listen.
func release(view *reconcile.View, among map[string]domain.GroupDocument, name string) {
	for _, assigned := range among[name].Assignments {
		address := view.Inventory.Hosts[assigned.Host].MemberAddress()
		if busy, found := view.Inventory.BusyPorts[address]; found {
			view.Inventory.BusyPorts[address] = slices.DeleteFunc(slices.Clone(busy), func(port int) bool { return port == assigned.Port })
		}
	}
	delete(among, name)
}
