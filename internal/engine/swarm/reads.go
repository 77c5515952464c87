package swarm

import (
	"context"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// list reads all objects of a kind: one request, whatever their number.
type list[T any] = func(ctx context.Context) ([]T, error)

// reads are the lists from which the engine tells everything. A plan takes each of them at most once, see [Engine.Snapshot].
type reads struct {
	nodes list[swarm.Node]
	// configs are those of all clusters that plans read.
	configs  list[swarm.Config]
	services list[swarm.Service]
	tasks    list[swarm.Task]
	// residents returns the tasks of the cluster's controller and agents.
	residents list[swarm.Task]
	networks  list[network.Summary]
	// seals tells which of the listed services somebody else changed.
	seals func(services []swarm.Service) map[string]spec.Sealed
}

// liveReads asks a manager each time.
func liveReads(c *connection) reads {
	return reads{
		nodes: ask(c, func(ctx context.Context, m manager) ([]swarm.Node, error) {
			return m.NodeList(ctx, swarm.NodeListOptions{})
		}),
		configs: c.configsWith(plannedNames()...),
		services: ask(c, func(ctx context.Context, m manager) ([]swarm.Service, error) {
			return m.ServiceList(ctx, swarm.ServiceListOptions{})
		}),
		tasks: ask(c, func(ctx context.Context, m manager) ([]swarm.Task, error) {
			return m.TaskList(ctx, swarm.TaskListOptions{})
		}),
		residents: ask(c, func(ctx context.Context, m manager) ([]swarm.Task, error) {
			return m.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(
				filters.Arg("label", spec.LabelCluster+"="+c.cluster), filters.Arg("label", spec.LabelKind), // members lack this label
			)})
		}),
		networks: ask(c, func(ctx context.Context, m manager) ([]network.Summary, error) {
			return listNetworks(ctx, m, c.cluster)
		}),
		seals: spec.SealsOf,
	}
}

// listNetworks lists the networks that a manager knows. One that can't ask the Swarm's leader lists those that are in use on its own node,
// and no error: so that the network of the cluster is missing counts only once the leader was reached.
func listNetworks(ctx context.Context, m manager, cluster string) ([]network.Summary, error) {
	found, err := m.NetworkList(ctx, network.ListOptions{})
	if _, exists := ownNetwork(found, cluster); exists || err != nil {
		return found, err
	}
	if _, err := m.SwarmInspect(ctx); err != nil {
		return nil, err
	}
	return m.NetworkList(ctx, network.ListOptions{})
}

func ask[T any](c *connection, read func(context.Context, manager) ([]T, error)) list[T] {
	return func(ctx context.Context) (found []T, err error) {
		err = c.ask(ctx, func(m manager) error {
			return patiently(ctx, func(ctx context.Context) (err error) {
				found, err = read(ctx, m)
				return err
			})
		})
		return found, err
	}
}

// remembered returns reads of a cluster that are taken once each. What failed is read again. Once there turn out to be groups, the list
// that grows with their members is on its way before it is asked for, and looked through.
func (r reads) remembered(cluster string) reads {
	services := engine.Once(r.services)
	var once sync.Once
	var known map[string]spec.Sealed
	seals := func(services []swarm.Service) map[string]spec.Sealed {
		once.Do(func() { known = r.seals(services) })
		return known
	}
	configs := func(ctx context.Context) ([]swarm.Config, error) {
		found, err := r.configs(ctx)
		if slices.ContainsFunc(found, func(c swarm.Config) bool {
			s := slotOf(c)
			return s.cluster == cluster && s.kind == domain.GroupKind.Name
		}) {
			ctx := context.WithoutCancel(ctx)
			go func() {
				if found, err := services(ctx); err == nil { // or else whoever needs it gets the error
					seals(found)
				}
			}()
		}
		return found, err
	}
	return reads{nodes: engine.Once(r.nodes), configs: engine.Once(configs), services: services, tasks: engine.Once(r.tasks), residents: engine.Once(r.residents), networks: engine.Once(r.networks), seals: seals}
}
