package swarm

import (
	"context"
	"maps"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// clearPatience is how long the hosts have to remove what is left of a group.
const clearPatience = 5 * time.Second

// readyEngines returns the reachable Engines of the nodes that are ready.
func (e *Engine) readyEngines(ctx context.Context) ([]client.APIClient, error) {
	m, err := e.connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	engines, err := e.connection.Engines(ctx, e, m)
	if err != nil {
		return nil, err
	}
	nodes, err := e.reads.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if node.Status.State != swarm.NodeStateReady {
			delete(engines, node.ID)
		}
	}
	return slices.Collect(maps.Values(engines)), nil
}

// clearContainers removes the containers of a group that have ended, on the hosts that can be reached. The Swarm
// removes them, too, some seconds after their end, and so whatever fails here is left to it; but until then they hold on
// to their images.
func (e *Engine) clearContainers(ctx context.Context, group string) {
	ctx, cancel := context.WithTimeout(ctx, clearPatience)
	defer cancel()
	engines, err := e.readyEngines(ctx)
	if err != nil {
		return
	}
	// Labels are inherited from images, too: only what the Swarm started is ours.
	ours := filters.NewArgs(
		filters.Arg("label", spec.LabelCluster+"="+e.cluster.Name), filters.Arg("label", spec.LabelGroup+"="+group), filters.Arg("is-task", "true"),
	)
	_ = dockerapi.InParallel(ctx, engines, func(ctx context.Context, host client.APIClient) error {
		return until(ctx, "its containers to be gone", func() (bool, error) {
			left, err := clearEnded(ctx, host, ours)
			return err == nil && left == 0, err
		})
	})
}

// clearEnded removes those of a host's containers that have ended, and returns how many it found.
func clearEnded(ctx context.Context, host client.APIClient, some filters.Args) (found int, err error) {
	left, err := host.ContainerList(ctx, container.ListOptions{All: true, Filters: some})
	left = slices.DeleteFunc(left, func(c container.Summary) bool { return c.State == container.StateRunning })
	_ = dockerapi.InParallel(ctx, left, func(ctx context.Context, c container.Summary) error {
		_ = host.ContainerRemove(ctx, c.ID, container.RemoveOptions{RemoveVolumes: true}) // the Swarm may be about to
		return nil
	})
	return len(left), err
}

// clearHistories removes the volumes of the agents from hosts on which none runs any more: a Swarm removes no volumes.
func (e *Engine) clearHistories(ctx context.Context, hosts ...client.APIClient) {
	ctx, cancel := context.WithTimeout(ctx, clearPatience)
	defer cancel()
	name := residentName(e.cluster.Name, kindAgent)
	using := filters.NewArgs(filters.Arg("volume", name), filters.Arg("is-task", "true"))
	_ = dockerapi.InParallel(ctx, hosts, func(ctx context.Context, host client.APIClient) error {
		return until(ctx, "volume "+name+" to be gone", func() (bool, error) {
			volume, err := host.VolumeInspect(ctx, name)
			if cerrdefs.IsNotFound(err) || err == nil && volume.Labels[spec.LabelCluster] != e.cluster.Name {
				return true, nil
			}
			if _, err := clearEnded(ctx, host, using); err != nil {
				return false, err
			}
			return false, host.VolumeRemove(ctx, name, false)
		})
	})
}
