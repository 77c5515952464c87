package members

import (
	"context"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// clearContainers removes the ended containers of a group on the reachable hosts. The Swarm would do that too, some
// seconds after their end, so failures don't matter; but until then the containers keep their images in use.
func (e Members) clearContainers(ctx context.Context, group string) {
	ctx, cancel := context.WithTimeout(ctx, dockerapi.ClearPatience)
	defer cancel()
	engines, err := e.ReadyEngines(ctx)
	if err != nil {
		return
	}
	// Images pass on labels too: only containers that the Swarm started are Trainyard's.
	ours := filters.NewArgs(
		filters.Arg("label", spec.LabelCluster+"="+e.Cluster), filters.Arg("label", spec.LabelGroup+"="+group),
		filters.Arg("is-task", "true"),
	)
	_ = dockerapi.InParallel(ctx, slices.Collect(maps.Values(engines)),
		func(ctx context.Context, host client.APIClient) error {
			return dockerapi.Until(ctx, "its containers to be removed", func() (bool, error) {
				left, err := dockerapi.ClearEnded(ctx, host, ours)
				return err == nil && left == 0, err
			})
		})
}
