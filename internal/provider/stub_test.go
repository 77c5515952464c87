package provider

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

// stubEngine answers what planning and reading ask for, keeps what is stored, and notes down the calls. Whatever
// changes something else is left to the nil engine inside of it, and panics.
type stubEngine struct {
	storetest.Memory
	unanswered

	gpus      map[string]domain.HostGPUs
	busy      map[string][]int
	observed  []domain.Observed
	problems  domain.Problems
	residents domain.Residents
	// network is that of a cluster which declares none, and surveyed what is found of a stored cluster, where it is set.
	network  *domain.Network
	surveyed func(domain.Cluster) (domain.Cluster, error)
	// endpoint is where a cluster is reached that names no endpoint.
	endpoint  string
	joinToken engine.JoinToken
	// traits are what is particular to it, where that is not as with "process".
	traits engine.Traits
	fails  failures

	mu        sync.Mutex
	calls     []string
	snapshots int
}

// failures are the errors of calls, by name as in [engine.Call]: "Get cluster", "Form".
type failures map[string]error

// unanswered is what a stub has no method for. Being one level deeper, it leaves the store to [storetest.Memory].
type unanswered struct{ engine.Engine }

// stubbed is a stub, or an engine made of one.
type stubbed interface {
	engine.Engine
	intercept(ctx context.Context, call engine.Call, do func() error) error
}

func (e *stubEngine) intercept(_ context.Context, call engine.Call, do func() error) error {
	e.mu.Lock()
	e.calls = append(e.calls, call.Name)
	e.mu.Unlock()
	if err := e.fails[call.Name]; err != nil {
		return err
	}
	return do()
}

// driver opens a stub for any cluster.
func driver(e stubbed) engine.Driver {
	return engine.Driver{Open: func(domain.ClusterRef, engine.Settings) (engine.Engine, error) {
		return engine.Intercept(e, e.intercept), nil
	}}
}

// registry knows the stub as the engines "process" and "swarm".
func (e *stubEngine) registry() engine.Registry {
	return engine.Registry{"process": driver(e), "swarm": driver(e)}
}

// set has a document be stored as it is.
func set[T any, P domain.Document[T]](e *stubEngine, doc T) *stubEngine {
	storetest.Set[T, P](&e.Memory, doc)
	return e
}

// documents returns what is stored of a type.
func documents[T any, P domain.Document[T]](e *stubEngine) map[string]T {
	return storetest.Documents[T, P](&e.Memory)
}

// change changes a document where it is stored.
func change[T any, P domain.Document[T]](e *stubEngine, name string, how func(doc P)) {
	doc := documents[T, P](e)[name]
	how(&doc)
	set[T, P](e, doc)
}

// drop removes all that is stored of a type.
func drop[T any, P domain.Document[T]](e *stubEngine) { storetest.Drop[T, P](&e.Memory) }

// hosts returns the hosts of the cluster.
func (e *stubEngine) hosts() map[string]domain.Host {
	return documents[domain.ClusterDocument](e)[""].Spec.Hosts
}

func (e *stubEngine) Traits() engine.Traits {
	traits := e.traits
	traits.Name = cmp.Or(traits.Name, "process")
	traits.Supports = engine.Features{
		Endpoint: true, Roles: true, Availability: true, AdvertiseAddress: true, Socket: true, Network: true, Containers: true,
	}
	return traits
}

func (e *stubEngine) Snapshot() engine.Engine {
	e.snapshots++
	return e
}

func (e *stubEngine) Survey(_ context.Context, c domain.Cluster) (domain.Cluster, error) {
	if e.surveyed != nil {
		return e.surveyed(c)
	}
	return c, nil
}

// Form knows hosts by what they are called, and chooses a subnet.
func (e *stubEngine) Form(_ context.Context, c domain.Cluster) (domain.Cluster, error) {
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

func (e *stubEngine) StartController(context.Context) error { return nil }

func (e *stubEngine) Recognise(context.Context, string) error { return nil }

func (e *stubEngine) Residents(context.Context) (domain.Residents, error) {
	return e.residents, nil
}

func (e *stubEngine) JoinToken(_ context.Context, role domain.HostRole) (engine.JoinToken, error) {
	token := e.joinToken
	token.Token += engine.Secret("-" + role)
	return token, nil
}

func (e *stubEngine) Complete(_ context.Context, c domain.Cluster) (domain.Cluster, domain.Problems, error) {
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

func (e *stubEngine) Inventory(_ context.Context, c domain.Cluster) (engine.Inventory, error) {
	busy := maps.Clone(e.busy)
	for address, ports := range busy {
		busy[address] = slices.Clone(ports)
	}
	return engine.Inventory{Hosts: c.Hosts, BusyPorts: busy}, nil
}

func (e *stubEngine) Preflight(context.Context, []domain.MemberSpec) (domain.Problems, error) {
	return e.problems, nil
}

func (e *stubEngine) GPUs(context.Context) (map[string]domain.HostGPUs, error) {
	return e.gpus, nil
}

func (e *stubEngine) Lock(context.Context, string, engine.Holder) (func() error, error) {
	return func() error { return nil }, nil
}

func (e *stubEngine) Observe(context.Context, string) ([]domain.Observed, error) {
	return e.observed, nil
}

func (e *stubEngine) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return e.Observe(ctx, group)
}
