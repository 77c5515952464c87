// Package swarm is the engine that runs members as services of a Docker Swarm.
//
// An indexed member is a service with one replica; the members of an interchangeable role are one replicated service.
// Items and locks are config objects of the Swarm. The Swarm runs everything on the hosts; when a member that ended is
// restarted is decided by this engine's own rule, in the cluster's controller (see [Engine.Guard]).
package swarm

import (
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/nodes"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
)

// Name is the engine's name in a configuration.
const Name = dockerapi.EngineName

// Program is what the controllers of clusters are run from.
type Program = daemons.Program

// Engine runs one cluster. It consists of parts that all work on the same Swarm, and is safe for concurrent use.
type Engine struct {
	dockerapi.Swarm
	store.Items
	store.Locks
	images.Images
	members.Members
	daemons.Daemons
	daemons.Agents
	nodes.Hosts

	program Program
	memory  memory
}

// memory is what parts keep between calls, and share with their snapshots.
type memory struct {
	locks   *store.Leases
	tags    *images.Tags
	members *members.Memory
}

// Driver returns the driver of this engine, which runs the controllers of clusters from program. An endpoint is that of
// a manager.
func Driver(program Program) engine.Driver {
	return engine.Driver{
		Open: func(cluster domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
			return Open(cluster, settings, program)
		},
		Clusters: store.Clusters, Schemes: []string{"ssh", "tcp", "unix"},
		Endpoint: "address of a Swarm manager, as in DOCKER_HOST",
		Lookup:   "the Docker Engine of DOCKER_HOST or the current Docker context",
	}
}

// Open returns the engine of a cluster; see [Driver].
func Open(cluster domain.ClusterRef, settings engine.Settings, program Program) (*Engine, error) {
	c, err := dockerapi.New(cluster, settings)
	if err != nil {
		return nil, err
	}
	m := memory{store.NewLeases(), images.NewTags(), members.NewMemory()}
	return newEngine(dockerapi.Swarm{Cluster: cluster.Name, Connection: c, Reads: dockerapi.Live(c)}, program, m), nil
}

// newEngine assembles the parts.
func newEngine(in dockerapi.Swarm, program Program, m memory) *Engine {
	items := store.NewItems(in)
	in.Items = items
	held := images.New(in, m.tags)
	of := members.New(in, held, m.members)
	residents := daemons.New(in, program, held, of)
	return &Engine{
		in, items, store.NewLocks(items, m.locks), held, of, residents, daemons.NewAgents(in, of),
		nodes.New(in, of, residents), program, m,
	}
}

// Traits returns the properties of this engine: members are reached by their names.
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{
		Name:          Name,
		MemberAddress: func(member string) string { return member },
		Schedules:     true,
		Supports: engine.Features{
			Endpoint: true, Roles: true, Availability: true, AdvertiseAddress: true, Socket: true, Network: true,
			Containers: true,
		},
		Contained:     true,
		NoResidents:   e.NoResidents(),
		NoMetricsPort: daemons.NoMetricsPort(e.Cluster),
		MaxItem:       store.MaxItem,
		FolderPlace:   e.FolderPlace,
	}
}

// Snapshot returns the engine with each list of the Swarm, and the GPUs, read at most once.
func (e *Engine) Snapshot() engine.Engine { return e.snapshot() }

func (e *Engine) snapshot() *Engine {
	in := e.Swarm
	in.Reads = in.Reads.Remembered(in.Cluster)
	snapshot := newEngine(in, e.program, e.memory)
	snapshot.Agents = snapshot.Once()
	return snapshot
}
