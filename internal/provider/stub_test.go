package provider

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// stubEngine answers what planning and reading ask for, keeps the document of a cluster, and counts the calls. Whatever changes
// something else is left to the nil engine inside of it, and panics.
type stubEngine struct {
	engine.Engine
	cluster    *domain.Cluster
	clusterErr error
	poolsErr   error
	// policiesErr is why the autoscaling policies can't be read.
	policiesErr error
	groups      map[string]domain.GroupDocument
	pools       map[string]domain.GPUPoolDocument
	policies    map[string]domain.AutoscalingPolicyDocument
	gpus        map[string]domain.HostGPUs
	busy        map[string][]int
	observed    []domain.Observed
	problems    domain.Problems
	residents   domain.Residents
	// network is that of a cluster which declares none, and surveyed what is found of a stored cluster, where it is set.
	network  *domain.Network
	surveyed func(domain.Cluster) (domain.Cluster, error)
	// endpoint is where a cluster is reached that names no endpoint.
	endpoint string
	// formErr is why the hosts can't be formed to a cluster, and putErr why its document can't be stored.
	formErr, putErr error
	joinToken       engine.JoinToken
	// traits are what is particular to it, where that is not as with "process".
	traits engine.Traits

	mu        sync.Mutex
	calls     []string
	snapshots int
}

func (e *stubEngine) call(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, name)
}

func (e *stubEngine) Traits() engine.Traits {
	traits := e.traits
	traits.Name = cmp.Or(traits.Name, "process")
	return traits
}

func (e *stubEngine) Snapshot() engine.Engine {
	e.snapshots++
	return e
}

func (e *stubEngine) Survey(_ context.Context, c domain.Cluster) (domain.Cluster, error) {
	e.call("Survey")
	if e.surveyed != nil {
		return e.surveyed(c)
	}
	return c, nil
}

// Form knows hosts by what they are called, and chooses a subnet.
func (e *stubEngine) Form(_ context.Context, c domain.Cluster) (domain.Cluster, error) {
	e.call("Form")
	if e.formErr != nil {
		return c, e.formErr
	}
	for name, h := range c.Hosts {
		if h.ID == "" {
			h.ID, h.Joined = "id-of-"+name, true
			c.Hosts[name] = h
		}
	}
	if c.Network != nil && c.Network.Subnet == "" {
		chosen := *c.Network
		chosen.Subnet = "10.99.0.0/20"
		c.Network = &chosen
	}
	return c, nil
}

func (e *stubEngine) PutCluster(_ context.Context, doc domain.ClusterDocument) (domain.ClusterDocument, error) {
	e.call("PutCluster")
	if e.putErr != nil {
		return doc, e.putErr
	}
	e.cluster = &doc.Spec
	doc.Revision++
	return doc, nil
}

func (e *stubEngine) StartController(context.Context) error {
	e.call("StartController")
	return nil
}

func (e *stubEngine) Residents(context.Context) (domain.Residents, error) {
	e.call("Residents")
	return e.residents, nil
}

func (e *stubEngine) JoinToken(_ context.Context, role domain.HostRole) (engine.JoinToken, error) {
	e.call("JoinToken")
	token := e.joinToken
	token.Token += engine.Secret("-" + role)
	return token, nil
}

func (e *stubEngine) Complete(_ context.Context, c domain.Cluster) (domain.Cluster, domain.Problems, error) {
	e.call("Complete")
	hosts := maps.Clone(c.Hosts)
	if len(hosts) == 0 {
		hosts = map[string]domain.Host{"local": {}}
	}
	for name, h := range hosts {
		if h.Address == "" {
			h.Address = "127.0.0.1"
		}
		if h.Capacity.CPUs == 0 {
			h.Capacity.CPUs = 4
		}
		if h.Capacity.MemoryMiB == 0 {
			h.Capacity.MemoryMiB = 8000
		}
		hosts[name] = h
	}
	c.Hosts = hosts
	c.Endpoint = cmp.Or(c.Endpoint, e.endpoint)
	if c.Network == nil {
		c.Network = e.network
	}
	return c, nil, nil
}

func (e *stubEngine) Cluster(context.Context) (domain.ClusterDocument, error) {
	e.call("Cluster")
	if e.clusterErr != nil {
		return domain.ClusterDocument{}, e.clusterErr
	}
	if e.cluster == nil {
		return domain.ClusterDocument{}, engine.ErrNotFound
	}
	return domain.ClusterDocument{Version: domain.DocumentVersion, Revision: 1, Spec: *e.cluster}, nil
}

func (e *stubEngine) Inventory(_ context.Context, c domain.Cluster) (engine.Inventory, error) {
	e.call("Inventory")
	busy := maps.Clone(e.busy)
	for address, ports := range busy {
		busy[address] = slices.Clone(ports)
	}
	return engine.Inventory{Hosts: c.Hosts, BusyPorts: busy}, nil
}

func (e *stubEngine) Preflight(context.Context, []domain.MemberSpec) (domain.Problems, error) {
	e.call("Preflight")
	return e.problems, nil
}

func (e *stubEngine) Groups(context.Context) (map[string]domain.GroupDocument, error) {
	e.call("Groups")
	return maps.Clone(e.groups), nil
}

func (e *stubEngine) GPUPools(context.Context) (map[string]domain.GPUPoolDocument, error) {
	e.call("GPUPools")
	return maps.Clone(e.pools), e.poolsErr
}

func (e *stubEngine) PutGPUPool(_ context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	e.call("PutGPUPool")
	if e.putErr != nil {
		return doc, e.putErr
	}
	if e.pools == nil {
		e.pools = map[string]domain.GPUPoolDocument{}
	}
	doc.Revision++
	e.pools[doc.Spec.Name] = doc
	return doc, nil
}

func (e *stubEngine) DeleteGPUPool(_ context.Context, pool string) error {
	e.call("DeleteGPUPool")
	delete(e.pools, pool)
	return nil
}

func (e *stubEngine) Policies(context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	e.call("Policies")
	return maps.Clone(e.policies), e.policiesErr
}

func (e *stubEngine) PutPolicy(_ context.Context, doc domain.AutoscalingPolicyDocument) (domain.AutoscalingPolicyDocument, error) {
	e.call("PutPolicy")
	if e.putErr != nil {
		return doc, e.putErr
	}
	if e.policies == nil {
		e.policies = map[string]domain.AutoscalingPolicyDocument{}
	}
	doc.Revision++
	e.policies[doc.Spec.Key()] = doc
	return doc, nil
}

func (e *stubEngine) DeletePolicy(_ context.Context, key string) error {
	e.call("DeletePolicy")
	delete(e.policies, key)
	return nil
}

func (e *stubEngine) GPUs(context.Context) (map[string]domain.HostGPUs, error) {
	e.call("GPUs")
	return e.gpus, nil
}

func (e *stubEngine) Lock(context.Context, string, engine.Holder) (func() error, error) {
	e.call("Lock")
	return func() error { return nil }, nil
}

func (e *stubEngine) Group(_ context.Context, name string) (domain.GroupDocument, error) {
	e.call("Group")
	document, found := e.groups[name]
	if !found {
		return domain.GroupDocument{}, engine.ErrNotFound
	}
	return document, nil
}

func (e *stubEngine) Observe(context.Context, string) ([]domain.Observed, error) {
	e.call("Observe")
	return e.observed, nil
}

// registry knows the stub as the engines "process" and "swarm".
func (e *stubEngine) registry() engine.Registry {
	return engine.Registry{"process": opener(e), "swarm": opener(e)}
}

// opener opens the stub for any cluster.
func opener(e *stubEngine) engine.Open {
	return func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return e, nil }
}

func inventoryOf(e *stubEngine) engine.Inventory {
	return engine.Inventory{Hosts: e.cluster.Hosts}
}
