package providertest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Stub answers reads and plans, keeps what is stored, and records the calls. All other calls go to the nil
// engine inside it, and panic.
type Stub struct {
	storetest.Memory
	unanswered

	HostGPUs map[string]domain.HostGPUs
	Busy     map[string][]int
	Observed []domain.Observed
	Problems domain.Problems
	Running  domain.Residents
	// Network is the network of a cluster that declares none, and Surveyed, if set, returns what is
	// found of a stored cluster.
	Network  *domain.Network
	Surveyed func(domain.Cluster) (domain.Cluster, error)
	// Endpoint is where a cluster without an endpoint is reached.
	Endpoint string
	Token    engine.JoinToken
	// Particular are traits that differ from those of "process".
	Particular engine.Traits
	Fails      Failures

	mu        sync.Mutex
	Calls     []string
	Snapshots int
}

// Failures are the errors of calls, by name as in [engine.Call]: "Get cluster", "Form".
type Failures map[string]error

// unanswered is the part of an engine that a stub lacks. It is one level deeper, so that [storetest.Memory] takes
// precedence as the store.
type unanswered struct{ engine.Engine }

// Stubbed is a stub, or an engine made from one.
type Stubbed interface {
	engine.Engine
	Intercept(ctx context.Context, call engine.Call, do func() error) error
}

// Intercept records a call, and makes it fail if it should.
func (e *Stub) Intercept(_ context.Context, call engine.Call, do func() error) error {
	e.mu.Lock()
	e.Calls = append(e.Calls, call.Name)
	e.mu.Unlock()
	if err := e.Fails[call.Name]; err != nil {
		return err
	}
	return do()
}

// Driver returns a driver that opens a stub for any cluster.
func Driver(e Stubbed) engine.Driver {
	return engine.Driver{Open: func(domain.ClusterRef, engine.Settings) (engine.Engine, error) {
		return engine.Intercept(e, e.Intercept), nil
	}}
}

// Registry returns the stub as the engines "process" and "swarm".
func (e *Stub) Registry() engine.Registry {
	return engine.Registry{"process": Driver(e), "swarm": Driver(e)}
}

// Set stores a document as it is.
func Set[T any, P domain.Document[T]](e *Stub, doc T) *Stub {
	storetest.Set[T, P](&e.Memory, doc)
	return e
}

// Documents returns the stored documents of a type.
func Documents[T any, P domain.Document[T]](e *Stub) map[string]T {
	return storetest.Documents[T, P](&e.Memory)
}

// Change changes a stored document.
func Change[T any, P domain.Document[T]](e *Stub, name string, how func(doc P)) {
	doc := Documents[T, P](e)[name]
	how(&doc)
	Set[T, P](e, doc)
}

// Drop removes the stored documents of a type.
func Drop[T any, P domain.Document[T]](e *Stub) { storetest.Drop[T, P](&e.Memory) }

// Hosts returns the hosts of the cluster.
func (e *Stub) Hosts() map[string]domain.Host {
	return Documents[domain.ClusterDocument](e)[""].Spec.Hosts
}

// Traits implements [engine.Engine].
func (e *Stub) Traits() engine.Traits {
	traits := e.Particular
	traits.Name = cmp.Or(traits.Name, "process")
	traits.Supports = engine.Features{
		Endpoint: true, Roles: true, Availability: true, AdvertiseAddress: true, Socket: true, Network: true,
		Containers: true,
	}
	return traits
}

// Snapshot implements [engine.Engine].
func (e *Stub) Snapshot() engine.Engine {
	e.Snapshots++
	return e
}

// Survey implements [engine.Engine].
func (e *Stub) Survey(_ context.Context, c domain.Cluster) (domain.Cluster, error) {
	if e.Surveyed != nil {
		return e.Surveyed(c)
	}
	return c, nil
}

// Form uses host names as IDs, and chooses a subnet.
func (e *Stub) Form(_ context.Context, c domain.Cluster) (domain.Cluster, error) {
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

// Dissolve implements [engine.Engine].
func (e *Stub) Dissolve(ctx context.Context) error {
	return e.Delete(ctx, engine.Key{Kind: domain.ClusterKind})
}

// StartController implements [engine.Engine].
func (e *Stub) StartController(context.Context) error { return nil }

// Start implements [engine.Engine].
func (e *Stub) Start(context.Context, string, int) error { return nil }

// Watch returns no events.
func (e *Stub) Watch(context.Context) (<-chan struct{}, error) { return make(chan struct{}), nil }

// Prune implements [engine.Engine].
func (e *Stub) Prune(context.Context, string, *domain.Group) error { return nil }

// Recognise implements [engine.Engine].
func (e *Stub) Recognise(context.Context, string) error { return nil }

// Residents implements [engine.Engine].
func (e *Stub) Residents(context.Context) (domain.Residents, error) {
	return e.Running, nil
}

// JoinToken implements [engine.Engine].
func (e *Stub) JoinToken(_ context.Context, role domain.HostRole) (engine.JoinToken, error) {
	token := e.Token
	token.Token += engine.Secret("-" + role)
	return token, nil
}

// Complete implements [engine.Engine].
func (e *Stub) Complete(_ context.Context, c domain.Cluster) (domain.Cluster, domain.Problems, error) {
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
	c.Endpoint = cmp.Or(c.Endpoint, e.Endpoint)
	if c.Network == nil {
		c.Network = e.Network
	}
	return c, nil, nil
}

// Inventory implements [engine.Engine].
func (e *Stub) Inventory(_ context.Context, c domain.Cluster) (engine.Inventory, error) {
	busy := maps.Clone(e.Busy)
	for address, ports := range busy {
		busy[address] = slices.Clone(ports)
	}
	return engine.Inventory{Hosts: c.Hosts, BusyPorts: busy}, nil
}

// Preflight implements [engine.Engine].
func (e *Stub) Preflight(context.Context, []domain.MemberSpec) (domain.Problems, error) {
	return e.Problems, nil
}

// GPUs implements [engine.Engine].
func (e *Stub) GPUs(context.Context) (map[string]domain.HostGPUs, error) {
	return e.HostGPUs, nil
}

// Lock implements [engine.Engine].
func (e *Stub) Lock(context.Context, string, engine.Holder) (func() error, error) {
	return func() error { return nil }, nil
}

// Observe implements [engine.Engine].
func (e *Stub) Observe(context.Context, string) ([]domain.Observed, error) {
	return e.Observed, nil
}

// Specified implements [engine.Engine].
func (e *Stub) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return e.Observe(ctx, group)
}

// Have sets up the group "g" with this many workers and no replicas, all as desired.
func (e *Stub) Have(t *testing.T, n int) {
	t.Helper()
	spec := ObservedGroup(t, false).Document.Spec
	spec.Template = domain.Template{}
	spec.Roles = map[string]domain.Role{
		"worker": {Port: new(10000), Template: domain.Template{Command: []string{"/bin/true"}}},
	}
	stored := Documents[domain.GroupDocument](e)["g"]
	stored.Spec, stored.Counts, stored.Applying = spec, map[string]int{"worker": n}, false
	decision, problems := reconcile.Decide(reconcile.View{
		Inventory: engine.Inventory{Hosts: e.Hosts()}, Groups: map[string]domain.GroupDocument{"g": stored},
	}, spec)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	decision.Document.Revision++
	Set(e, decision.Document)
	e.Observed = nil
	for i, m := range decision.Members {
		e.Observed = append(e.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
}

// ScalingTo makes the document ask for this many workers, none of which was started or removed yet.
func (e *Stub) ScalingTo(t *testing.T, n int) {
	t.Helper()
	observed := e.Observed
	e.Have(t, n)
	Change(e, "g", func(document *domain.GroupDocument) { document.Scaling = true })
	e.Observed = observed
}

// Scale sets the number of workers of the group "g", as a policy would.
func (e *Stub) Scale(t *testing.T, workers int) {
	t.Helper()
	document := Documents[domain.GroupDocument](e)["g"]
	document.Counts = map[string]int{"worker": workers}
	decision, problems := reconcile.Decide(reconcile.View{
		Inventory: engine.Inventory{Hosts: e.Hosts()}, Groups: map[string]domain.GroupDocument{"g": document},
	}, document.Spec)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	e.Observed = nil
	for i, m := range decision.Members {
		e.Observed = append(e.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
	Set(e, decision.Document)
}
