package swarm

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

// followHosts has members follow their hosts to the nodes that these have become: a host that left the Swarm and joined it again is
// another node. Agents keep off those that are nobody's yet.
func (e *Engine) followHosts(ctx context.Context) error {
	services, err := e.reads.Services(ctx)
	if err != nil {
		return err
	}
	tasks, err := e.reads.Tasks(ctx)
	if err != nil {
		return err
	}
	nodes, err := e.reads.Nodes(ctx)
	if err != nil {
		return err
	}
	if err := e.keepOff(ctx, services, tasks); err != nil {
		return err
	}
	stranded := strandedAmong(services, tasks, nodes, e.cluster.Name)
	if len(stranded) == 0 {
		return nil
	}
	document, err := engine.Cluster(ctx, e)
	if err != nil {
		return err
	}
	m, err := e.connection.Manager(ctx)
	if err != nil {
		return err
	}
	hosts := hostNodes(document.Spec, nodes)
	return dockerapi.InParallel(ctx, stranded, func(ctx context.Context, service swarm.Service) error {
		err := e.update(ctx, m, service, service.Spec.Name, "", func(live swarm.Service) (swarm.ServiceSpec, bool) {
			return spec.Repin(live.Spec, spec.PinnedNode(service.Spec), hosts)
		})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// hostNodes returns the IDs of the nodes that a cluster's hosts are, as far as they are part of the Swarm.
func hostNodes(cluster domain.Cluster, nodes []swarm.Node) map[string]string {
	f := &facts{stored: cluster, nodes: nodes}
	ids := map[string]string{}
	for name := range cluster.Hosts {
		if node, found := f.known(name); found {
			ids[name] = node.ID
		}
	}
	return ids
}

// strandedAmong returns the services of members that have not ended, and are pinned to nodes that are gone.
func strandedAmong(services []swarm.Service, tasks []swarm.Task, nodes []swarm.Node, cluster string) []swarm.Service {
	view := view{nodes: dockerapi.NewNodes(nodes)}
	own := byService(tasks)
	return slices.DeleteFunc(slices.Clone(services), func(service swarm.Service) bool {
		pin, id := spec.PinnedNode(service.Spec), spec.IdentityOf(service)
		if _, there := view.nodes[pin]; there || pin == "" || !spec.BelongsTo(service, cluster) || id.Group == "" || id.Pooled {
			return true
		}
		var o domain.Observed
		r, _ := spec.RecordOf(service.Spec)
		view.observeMember(&o, service, membersOf(service, own[service.ID])[0], r)
		return o.State.Ended()
	})
}
