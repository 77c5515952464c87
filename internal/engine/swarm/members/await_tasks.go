package members

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// AwaitTasks returns when no task that satisfies leaving may still run. A task on a host that is down doesn't count, as
// it keeps its last state. Managers may restart in the meantime.
func (e Members) AwaitTasks(ctx context.Context, leaving func(t swarm.Task) bool) error {
	return dockerapi.Until(ctx, "tasks to end", func() (bool, error) {
		tasks, err := dockerapi.Live(e.Connection).Tasks(ctx)
		if err != nil {
			return false, err
		}
		nodes, err := dockerapi.Live(e.Connection).Nodes(ctx)
		view := dockerapi.NewNodes(nodes)
		return err == nil && !slices.ContainsFunc(tasks, func(t swarm.Task) bool {
			return leaving(t) && !dockerapi.Ended(t) && view.Awaited(t.NodeID)
		}), err
	})
}
