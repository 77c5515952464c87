package swarm

import (
	"context"
	"maps"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// followHosts has members follow their hosts to the nodes that these have become: a host that left the Swarm and joined it again is
// another node. Agents keep off those that are nobody's yet.
func (e *Engine) followHosts(ctx context.Context) error {
	services, err := e.reads.services(ctx)
	if err != nil {
		return err
	}
	tasks, err := e.reads.tasks(ctx)
	if err != nil {
		return err
	}
	nodes, err := e.reads.nodes(ctx)
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
	m, err := e.manager(ctx)
	if err != nil {
		return err
	}
	hosts := hostNodes(document.Spec, nodes)
	return inParallel(ctx, stranded, func(ctx context.Context, service swarm.Service) error {
		err := e.update(ctx, m, service, service.Spec.Name, "", func(live swarm.Service) (swarm.ServiceSpec, bool) {
			return pinnedAnew(live.Spec, pinnedTo(service.Spec), hosts)
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
	view := view{nodes: newNodeView(nodes)}
	own := byService(tasks)
	return slices.DeleteFunc(slices.Clone(services), func(service swarm.Service) bool {
		pin, id := pinnedTo(service.Spec), identityOf(service)
		if _, there := view.nodes[pin]; there || pin == "" || !ours(service, cluster) || id.group == "" || id.pooled {
			return true
		}
		var o domain.Observed
		r, _ := recordOf(service.Spec)
		view.observeMember(&o, service, membersOf(service, own[service.ID])[0], r)
		return o.State.Ended()
	})
}

// pinnedAnew returns a service that was pinned to a node pinned to the one that its host is now, and whether that is a change. What
// others changed of it stays so.
func pinnedAnew(live swarm.ServiceSpec, formerly string, hosts map[string]string) (swarm.ServiceSpec, bool) {
	r, found := recordOf(live)
	now, joined := hosts[r.Host]
	if !found || !joined || now == formerly || pinnedTo(live) != formerly {
		return live, false
	}
	follow := func(constraints []string) []string {
		followed := slices.Clone(constraints)
		for i, constraint := range followed {
			if compact(constraint) == nodeIs+formerly {
				followed[i] = nodeIs + now
			}
		}
		return followed
	}
	next := live
	placement := *live.TaskTemplate.Placement
	placement.Constraints = follow(placement.Constraints)
	next.TaskTemplate.Placement = &placement
	r.Constraints = follow(r.Constraints)
	next.Labels = maps.Clone(live.Labels)
	r.put(&next)
	return next, true
}
