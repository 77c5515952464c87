package daemons

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// ClearHistories removes the agents' volumes from hosts that no longer run one: a Swarm removes no volumes.
func (e Daemons) ClearHistories(ctx context.Context, hosts ...client.APIClient) {
	ctx, cancel := context.WithTimeout(ctx, dockerapi.ClearPatience)
	defer cancel()
	name := spec.ResidentName(e.Cluster, spec.KindAgent)
	using := filters.NewArgs(filters.Arg("volume", name), filters.Arg("is-task", "true"))
	_ = dockerapi.InParallel(ctx, hosts, func(ctx context.Context, host client.APIClient) error {
		return dockerapi.Until(ctx, "volume "+name+" to be removed", func() (bool, error) {
			volume, err := host.VolumeInspect(ctx, name)
			if cerrdefs.IsNotFound(err) || err == nil && volume.Labels[spec.LabelCluster] != e.Cluster {
				return true, nil
			}
			if _, err := dockerapi.ClearEnded(ctx, host, using); err != nil {
				return false, err
			}
			return false, host.VolumeRemove(ctx, name, false)
		})
	})
}
