package swarm

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
)

// clearPatience is how long the hosts have to remove what is left of a group.
const clearPatience = 5 * time.Second

// clearContainers removes the containers of a group that have ended, on the hosts that can be reached. The Swarm removes them, too, some
// seconds after their end, and so whatever fails here is left to it; but until then they hold on to their images.
func (e *Engine) clearContainers(ctx context.Context, group string) {
	ctx, cancel := context.WithTimeout(ctx, clearPatience)
	defer cancel()
	m, err := e.manager(ctx)
	if err != nil {
		return
	}
	engines, err := e.engines(ctx, m)
	if err != nil {
		return
	}
	nodes, err := e.reads.nodes(ctx)
	if err != nil {
		return
	}
	for _, node := range nodes {
		if node.Status.State != swarm.NodeStateReady {
			delete(engines, node.ID)
		}
	}
	ended := filters.NewArgs(
		filters.Arg("label", labelCluster+"="+e.cluster.Name), filters.Arg("label", labelGroup+"="+group), filters.Arg("status", container.StateExited),
	)
	_ = inParallel(ctx, slices.Collect(maps.Values(engines)), func(ctx context.Context, host client.APIClient) error {
		left, _ := host.ContainerList(ctx, container.ListOptions{All: true, Filters: ended})
		return inParallel(ctx, left, func(ctx context.Context, c container.Summary) error {
			_ = host.ContainerRemove(ctx, c.ID, container.RemoveOptions{RemoveVolumes: true}) // the Swarm may be about to
			return nil
		})
	})
}
