package resourcekit

import (
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Plans holds what one run of Terraform has planned and not applied yet, so that a group can be checked against
// clusters, GPU pools and other groups that have yet to be created or changed.
type Plans struct {
	mu       sync.Mutex
	clusters map[ClusterID]PlannedCluster
	// sites are the clusters as configured, also after they were applied.
	sites    map[ClusterID]domain.Cluster
	groups   map[ClusterID]map[string]domain.GroupDocument
	pools    map[ClusterID]map[string]PlannedPool
	specs    map[ItemAddress]PlannedSpec
	policies map[PolicyAddress]PlannedPolicy
	sweeps   map[ItemAddress]PlannedSweep
	files    map[ItemAddress]string
	// yields are the members that yield to a planned group, by policy key.
	yields map[ItemAddress]map[string][]string
	// Deciding is held from reading the planned groups and pools until another one is added.
	Deciding sync.Mutex
}

// PlannedCluster is the planned specification of a cluster; it is not settled while parts of it are
// known only after the apply.
type PlannedCluster struct {
	Spec    domain.Cluster
	Settled bool
}

// PlannedPool is the planned document of a GPU pool. It is not settled while its devices are known only after the
// apply, and leaving if it will be destroyed.
type PlannedPool struct {
	Document         domain.GPUPoolDocument
	Settled, Leaving bool
}

// PlannedSpec is the planned specification of a group, even if its members can't be placed yet. It is not known while
// parts of it are known only after the apply, and leaving if the group will be destroyed. One that is created anew
// keeps nothing of an earlier group.
type PlannedSpec struct {
	Spec                 domain.Group
	Known, Leaving, Anew bool
}

// PlannedPolicy is what this run knows of an autoscaling policy: whether it is in the state, whether it is planned, and
// whether it will be destroyed. Spec is set if all of it is known.
type PlannedPolicy struct {
	Spec                  domain.AutoscalingPolicy
	Had, Planned, Leaving bool
	// warned are the warnings that this run has shown.
	warned map[string]bool
}

// PlannedSweep is what this run knows of a sweep: leaving if it will be destroyed, and anew if it keeps
// nothing of an earlier sweep.
type PlannedSweep struct{ Leaving, Anew bool }

func newPlans() *Plans {
	return &Plans{
		clusters: map[ClusterID]PlannedCluster{}, sites: map[ClusterID]domain.Cluster{},
		groups: map[ClusterID]map[string]domain.GroupDocument{}, pools: map[ClusterID]map[string]PlannedPool{},
		specs: map[ItemAddress]PlannedSpec{}, policies: map[PolicyAddress]PlannedPolicy{},
		sweeps: map[ItemAddress]PlannedSweep{},
		files:  map[ItemAddress]string{}, yields: map[ItemAddress]map[string][]string{},
	}
}

// ClaimCluster records where a configured cluster is. If this run has planned another one of its engine and name, with
// another endpoint and other hosts, it returns that one.
func (p *Plans) ClaimCluster(configured domain.Cluster) (other domain.Cluster, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := IDOf(configured.Ref())
	other, found := p.sites[id]
	if !found {
		p.sites[id] = configured
	}
	return other, found && apart(other, configured)
}

// apart reports whether two clusters have neither their endpoint nor the address of a host in common.
func apart(a, b domain.Cluster) bool {
	addresses := map[string]bool{}
	for _, host := range a.Hosts {
		addresses[host.Address] = host.Address != ""
	}
	for _, host := range b.Hosts {
		if addresses[host.Address] {
			return false
		}
	}
	return a.Endpoint != b.Endpoint
}

// PutCluster stores the planned specification of a cluster.
func (p *Plans) PutCluster(id ClusterID, planned PlannedCluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clusters[id] = planned
}

// Cluster returns the planned specification of a cluster, if this run has planned it.
func (p *Plans) Cluster(id ClusterID) (planned PlannedCluster, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found = p.clusters[id]
	return planned, found
}

// DropCluster forgets an applied plan: from then on the cluster's document counts.
func (p *Plans) DropCluster(id ClusterID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clusters, id)
}

// PutGroup stores the planned document of a group.
func (p *Plans) PutGroup(id ClusterID, name string, planned domain.GroupDocument) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups[id] == nil {
		p.groups[id] = map[string]domain.GroupDocument{}
	}
	p.groups[id][name] = planned
}

// PutLeaving records that a group will be destroyed, with an empty document.
func (p *Plans) PutLeaving(id ClusterID, name string) {
	p.PutGroup(id, name, domain.GroupDocument{})
	p.PutSpec(ItemAddress{id, name}, PlannedSpec{Leaving: true})
}

// PutSpec stores the planned specification of a group.
func (p *Plans) PutSpec(group ItemAddress, planned PlannedSpec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.specs[group] = planned
}

// Spec returns the planned specification of a group, if this run has planned it.
func (p *Plans) Spec(group ItemAddress) (planned PlannedSpec, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found = p.specs[group]
	return planned, found
}

// DropGroup forgets a plan that was applied or has failed.
func (p *Plans) DropGroup(id ClusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups[id], name)
	delete(p.specs, ItemAddress{id, name})
	delete(p.yields, ItemAddress{id, name})
}

// PutYields stores which members yield to a group, by policy key: there is room for it once they are gone.
func (p *Plans) PutYields(group ItemAddress, gone map[string][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.yields[group] = gone
}

// KnowPolicy records that a policy is in the state.
func (p *Plans) KnowPolicy(at PolicyAddress) {
	p.changePolicy(at, func(known *PlannedPolicy) { known.Had = true })
}

// PutPolicyLeaving records that a policy will be destroyed.
func (p *Plans) PutPolicyLeaving(at PolicyAddress) {
	p.changePolicy(at, func(known *PlannedPolicy) { known.Leaving = true })
}

// PutPolicy stores the planned specification of a policy, and reports whether it is the first one planned for its role.
func (p *Plans) PutPolicy(at PolicyAddress, spec domain.AutoscalingPolicy) (first bool) {
	p.changePolicy(at, func(known *PlannedPolicy) {
		first = !known.Planned
		known.Planned, known.Spec = true, spec
	})
	return first
}

// NewWarnings returns those of the warnings about a policy that this run has not shown yet, and records them as shown.
func (p *Plans) NewWarnings(at PolicyAddress, warnings domain.Problems) (fresh domain.Problems) {
	p.changePolicy(at, func(known *PlannedPolicy) {
		for _, w := range warnings {
			if text := w.Error(); !known.warned[text] {
				fresh = append(fresh, w)
				if known.warned == nil {
					known.warned = map[string]bool{}
				}
				known.warned[text] = true
			}
		}
	})
	return fresh
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

// DropPolicy forgets a plan that was applied or has failed.
func (p *Plans) DropPolicy(at PolicyAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.policies, at)
}

// PutSweep stores what is planned for a sweep.
func (p *Plans) PutSweep(at ItemAddress, planned PlannedSweep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeps[at] = planned
}

// DropSweep forgets a plan that was applied or has failed.
func (p *Plans) DropSweep(at ItemAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sweeps, at)
}

// PutFiles stores the folder of files that hosts will get.
func (p *Plans) PutFiles(at ItemAddress, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[at] = path
}

// DropFiles forgets a plan that was applied or has failed.
func (p *Plans) DropFiles(at ItemAddress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.files, at)
}

// ArrivingFiles returns the folders of files that the hosts of a cluster will get.
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

// PutPool stores the planned document of a GPU pool.
func (p *Plans) PutPool(id ClusterID, name string, planned PlannedPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools[id] == nil {
		p.pools[id] = map[string]PlannedPool{}
	}
	p.pools[id][name] = planned
}

// DropPool forgets a plan that was applied or has failed.
func (p *Plans) DropPool(id ClusterID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pools[id], name)
}

// PoolIsOpen reports whether the devices of a GPU pool are known only after the apply.
func (p *Plans) PoolIsOpen(id ClusterID, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	planned, found := p.pools[id][name]
	return found && !planned.Settled && !planned.Leaving
}

// ForeseePools returns the planned GPU pools of a cluster on top of its present ones, as far as
// their devices are known.
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

// Foresee changes the view of a cluster to what is planned for its groups, sweeps and GPU pools. The group it is done
// for keeps its own document, unless it is new: then whatever has its name will be gone before it is created.
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
			view.Sweeps[at.Name] = domain.GroupDocument{} // the name is taken, even without runs
		}
	}
}

// release removes a group, or the runs of a sweep, from a view, with the ports of its members.
func release(view *reconcile.View, among map[string]domain.GroupDocument, name string) {
	for _, assigned := range among[name].Assignments {
		address := view.Inventory.Hosts[assigned.Host].MemberAddress()
		if busy, found := view.Inventory.BusyPorts[address]; found {
			view.Inventory.BusyPorts[address] = slices.DeleteFunc(slices.Clone(busy),
				func(port int) bool { return port == assigned.Port })
		}
	}
	delete(among, name)
}
