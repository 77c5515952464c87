package dockerapi

import (
	"context"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
)

// ClearEnded removes the ended containers among those that some selects on a host, and returns how many it found.
func ClearEnded(ctx context.Context, host client.APIClient, some filters.Args) (found int, err error) {
	left, err := host.ContainerList(ctx, container.ListOptions{All: true, Filters: some})
	left = slices.DeleteFunc(left, func(c container.Summary) bool { return c.State == container.StateRunning })
	_ = InParallel(ctx, left, func(ctx context.Context, c container.Summary) error {
		// the Swarm may be removing it too
		_ = host.ContainerRemove(ctx, c.ID, container.RemoveOptions{RemoveVolumes: true})
		return nil
	})
	return len(left), err
}

// ClearPatience is how long the hosts have to remove what is left of a group, or of the agents: an Engine that is busy
// takes seconds for each container.
const ClearPatience = 30 * time.Second
