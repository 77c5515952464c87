package dockerapi

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

// List reads all objects of a kind: one request, whatever their number.
type List[T any] = func(ctx context.Context) ([]T, error)

// Reads are the lists from which the engine derives everything. A plan reads each of them at most once, see
// [Reads.Remembered].
type Reads struct {
	Nodes List[swarm.Node]
	// Configs are those that plans read, of all clusters.
	Configs  List[swarm.Config]
	Services List[swarm.Service]
	Tasks    List[swarm.Task]
	// Residents returns the tasks of the cluster's controller and agents.
	Residents List[swarm.Task]
	Networks  List[network.Summary]
	// Seals returns which of the listed services somebody else changed.
	Seals func(services []swarm.Service) map[string]spec.Sealed
}

// Live returns reads that ask a manager each time.
func Live(c *Connection) Reads {
	return Reads{
		Nodes: ask(c, func(ctx context.Context, m Manager) ([]swarm.Node, error) {
			return m.NodeList(ctx, swarm.NodeListOptions{})
		}),
		Configs: c.PlannedConfigs(),
		Services: ask(c, func(ctx context.Context, m Manager) ([]swarm.Service, error) {
			return m.ServiceList(ctx, swarm.ServiceListOptions{})
		}),
		Tasks: ask(c, func(ctx context.Context, m Manager) ([]swarm.Task, error) {
			return m.TaskList(ctx, swarm.TaskListOptions{})
		}),
		Residents: ask(c, func(ctx context.Context, m Manager) ([]swarm.Task, error) {
			return m.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(
				// members lack this label
				filters.Arg("label", spec.LabelCluster+"="+c.cluster), filters.Arg("label", spec.LabelKind),
			)})
		}),
		Networks: ask(c, func(ctx context.Context, m Manager) ([]network.Summary, error) {
			return listNetworks(ctx, m, c.cluster)
		}),
		Seals: spec.SealsOf,
	}
}

// ServicesWithTasks returns the services, and their tasks as [TasksByService] has them.
func (r Reads) ServicesWithTasks(
	ctx context.Context,
) (services []swarm.Service, tasks map[string][]swarm.Task, err error) {
	if services, err = r.Services(ctx); err != nil {
		return nil, nil, err
	}
	list, err := r.Tasks(ctx)
	return services, TasksByService(list), err
}

func ask[T any](c *Connection, read func(context.Context, Manager) ([]T, error)) List[T] {
	return func(ctx context.Context) (found []T, err error) {
		err = c.Ask(ctx, func(m Manager) error {
			return Patiently(ctx, func(ctx context.Context) (err error) {
				found, err = read(ctx, m)
				return err
			})
		})
		return found, err
	}
}

// Remembered returns a cluster's reads with each list read at most once; failed reads are repeated. As soon as it turns
// out that there are groups, it reads and checks the list of services, which grows with their members, in advance.
func (r Reads) Remembered(cluster string) Reads {
	services := engine.Once(r.Services)
	var once sync.Once
	var known map[string]spec.Sealed
	seals := func(services []swarm.Service) map[string]spec.Sealed {
		once.Do(func() { known = r.Seals(services) })
		return known
	}
	configs := func(ctx context.Context) ([]swarm.Config, error) {
		found, err := r.Configs(ctx)
		if slices.ContainsFunc(found, func(c swarm.Config) bool {
			return c.Spec.Labels[spec.LabelCluster] == cluster && c.Spec.Labels[spec.LabelKind] == domain.GroupKind.Name
		}) {
			ctx := context.WithoutCancel(ctx)
			go func() {
				if found, err := services(ctx); err == nil { // otherwise whoever needs it gets the error
					seals(found)
				}
			}()
		}
		return found, err
	}
	return Reads{
		Nodes: engine.Once(r.Nodes), Configs: engine.Once(configs), Services: services, Tasks: engine.Once(r.Tasks),
		Residents: engine.Once(r.Residents), Networks: engine.Once(r.Networks), Seals: seals,
	}
}
