package members

import (
	"context"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// FollowHosts moves members to the nodes that their hosts have become: a host that left the Swarm and joined it again
// is another node.
func (e Members) FollowHosts(ctx context.Context) error {
	services, tasks, err := e.Reads.ServicesWithTasks(ctx)
	if err != nil {
		return err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return err
	}
	stranded := strandedAmong(services, tasks, nodes, e.Cluster)
	if len(stranded) == 0 {
		return nil
	}
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil {
		return err
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	hosts := dockerapi.NodesOf(document.Spec, nodes)
	return dockerapi.InParallel(ctx, stranded, func(ctx context.Context, service swarm.Service) error {
		err := e.UpdateService(ctx, m, service, service.Spec.Name, "",
			func(live swarm.Service) (swarm.ServiceSpec, bool) {
				return spec.Repin(live.Spec, spec.PinnedNode(service.Spec), hosts)
			})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// strandedAmong returns the services of members that have not ended, and are pinned to nodes that are gone, or that are
// down while their machines may be other nodes.
func strandedAmong(
	services []swarm.Service, tasks map[string][]swarm.Task, nodes []swarm.Node, cluster string,
) []swarm.Service {
	view := view{nodes: dockerapi.NewNodes(nodes)}
	return slices.DeleteFunc(slices.Clone(services), func(service swarm.Service) bool {
		pin, id := spec.PinnedNode(service.Spec), spec.IdentityOf(service)
		node, there := view.nodes[pin]
		if there && !dockerapi.IsSucceeded(nodes, node) || pin == "" || !spec.BelongsTo(service, cluster) ||
			id.Group == "" || id.Pooled {
			return true
		}
		var o domain.Observed
		r, _ := spec.RecordOf(service.Spec)
		view.observeMember(&o, service, membersOf(service, tasks[service.ID])[0], r)
		return o.State.Ended()
	})
}
