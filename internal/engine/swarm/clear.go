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
	// Labels are inherited from images, too: only what the Swarm started is ours.
	ours := filters.NewArgs(
		filters.Arg("label", labelCluster+"="+e.cluster.Name), filters.Arg("label", labelGroup+"="+group), filters.Arg("is-task", "true"),
	)
	_ = inParallel(ctx, slices.Collect(maps.Values(engines)), func(ctx context.Context, host client.APIClient) error {
		return until(ctx, "its containers to be gone", func() (bool, error) {
			left, err := host.ContainerList(ctx, container.ListOptions{All: true, Filters: ours})
			left = slices.DeleteFunc(left, func(c container.Summary) bool { return c.State == container.StateRunning })
			_ = inParallel(ctx, left, func(ctx context.Context, c container.Summary) error {
				_ = host.ContainerRemove(ctx, c.ID, container.RemoveOptions{RemoveVolumes: true}) // the Swarm may be about to
				return nil
			})
			return err == nil && len(left) == 0, err
		})
	})
}
