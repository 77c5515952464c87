// Package swarm is the engine that runs members as services of a Docker Swarm.
//
// An indexed member is a service of one replica; the members of an interchangeable role are one replicated service.
// Items and locks are config objects of the Swarm. What runs on the hosts is the Swarm's to run; when a member
// that ended is started again is decided by this engine's own rule, in the cluster's controller (see [Engine.Guard]).
package swarm

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// Name is the engine's name in a configuration.
const Name = "swarm"

// Program is what the controllers of clusters are run from.
type Program struct {
	// File is the program's file; empty for that of the present process. Where it has a neighbour that knows GPUs, that one is taken, see
	// [telemetry.AgentProgram].
	File string
	// Version tells programs apart: a controller of another version is replaced when a cluster is next changed.
	Version string
}

// Engine runs one cluster. It is safe for concurrent use.
type Engine struct {
	store
	cluster    domain.ClusterRef
	program    Program
	connection *dockerapi.Connection
	reads      dockerapi.Reads
	// gpus reads the GPUs of all hosts.
	gpus    func(ctx context.Context) (map[string]domain.HostGPUs, error)
	staged  *staged
	locks   *locks
	watcher *watcher
	tags    *tags
}

// Driver returns the driver of this engine, which runs the controllers of clusters from a program. An endpoint is that of a manager.
func Driver(program Program) engine.Driver {
	return engine.Driver{
		Open: func(cluster domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
			return Open(cluster, settings, program)
		},
		Clusters: clusters, Endpoint: "address of a manager of the Swarm, as DOCKER_HOST has it", Lookup: "the Docker Engine that DOCKER_HOST or the present Docker context names",
	}
}

// Open returns the engine of a cluster; see [Driver].
func Open(cluster domain.ClusterRef, settings engine.Settings, program Program) (*Engine, error) {
	c, err := dockerapi.New(cluster, settings)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cluster: cluster, program: program, connection: c,
		staged: newStaged(), locks: newLocks(), watcher: &watcher{}, tags: newTags(),
	}
	return e.with(dockerapi.Live(c)), nil
}

// with returns the engine with other reads.
func (e *Engine) with(reads dockerapi.Reads) *Engine {
	other := *e
	other.reads, other.store = reads, store{e.cluster.Name, e.connection, reads.Configs}
	other.gpus = other.readGPUs
	return &other
}

// Traits returns what is particular to this engine: members are reached by their names.
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{
		Name:          Name,
		MemberAddress: func(member string) string { return member },
		Schedules:     true,
		Supports: engine.Features{
			Endpoint: true, Roles: true, Availability: true, AdvertiseAddress: true, Socket: true, Network: true, Containers: true,
		},
		Contained: true,
		MaxItem:   maxItem,
		FilesDir:  func(string) string { return domain.FilesDir },
	}
}

// Snapshot returns the engine with each list of the Swarm, and the GPUs, read at most once.
func (e *Engine) Snapshot() engine.Engine { return e.snapshot() }

func (e *Engine) snapshot() *Engine {
	snapshot := e.with(e.reads.Remembered(e.cluster.Name))
	snapshot.gpus = engine.Once(snapshot.readGPUs)
	return snapshot
}
