package members

import (
	"context"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// swarmPatience is how long a Swarm waits for a task to end before it starts the successor beside it, even if its grace
// period is longer.
const swarmPatience = time.Minute

// endFirst ends the members that the changes replace and that the Swarm would not wait for, and returns when they have
// ended. If it dies, the changes are still needed. It returns the services as they are now, by name.
func (e Members) endFirst(
	ctx context.Context, changes []change, services map[string]swarm.Service,
) (map[string]swarm.Service, error) {
	slow := slices.DeleteFunc(slices.Clone(changes), func(c change) bool {
		live, found := services[c.want.Name]
		return !found || c.pooled || !isSlow(live.Spec)
	})
	if len(slow) == 0 {
		return services, nil
	}
	tasks, err := dockerapi.Live(e.Connection).Tasks(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := dockerapi.Live(e.Connection).Nodes(ctx)
	if err != nil {
		return nil, err
	}
	of, view := dockerapi.TasksByService(tasks), dockerapi.NewNodes(nodes)
	slow = slices.DeleteFunc(slow, func(c change) bool {
		live := services[c.want.Name]
		return !c.replaces(view, live, of[live.ID])
	})
	if len(slow) == 0 {
		return services, nil
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	err = dockerapi.InParallel(ctx, slow, func(ctx context.Context, c change) error {
		err := e.UpdateService(ctx, m, services[c.want.Name], c.want.Name, "",
			func(live swarm.Service) (swarm.ServiceSpec, bool) {
				return spec.Nowhere(live.Spec), live.Spec.Labels[spec.LabelStop] == ""
			})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	ending := map[string]bool{}
	for _, c := range slow {
		ending[services[c.want.Name].ID] = true
	}
	err = e.AwaitTasks(ctx, func(t swarm.Task) bool { return ending[t.ServiceID] && t.NodeID != "" })
	if err != nil {
		return nil, err
	}
	return e.Services(ctx)
}

// isSlow reports whether a Swarm might replace the task of a service before it has ended. Whoever had it start the
// successor first wants that.
func isSlow(live swarm.ServiceSpec) bool {
	c, update := live.TaskTemplate.ContainerSpec, live.UpdateConfig
	return c != nil && c.StopGracePeriod != nil && *c.StopGracePeriod > swarmPatience &&
		spec.Replicas(live) == 1 && (update == nil || update.Order != swarm.UpdateOrderStartFirst)
}

// replaces reports whether the change makes the Swarm replace a task that may run.
func (c change) replaces(nodes dockerapi.Nodes, service swarm.Service, tasks []swarm.Task) bool {
	next, changed := c.apply(service)
	service.Spec = next
	return changed && slices.ContainsFunc(tasks, func(t swarm.Task) bool {
		return t.NodeID != "" && !dockerapi.Ended(t) && nodes.Awaited(t.NodeID) && isReplaced(nodes, service, t)
	})
}

// apply returns a live service with the change, and whether that is another one.
func (c change) apply(live swarm.Service) (swarm.ServiceSpec, bool) {
	next := spec.Overlay(live.Spec, spec.KeepEnvironment(live.Spec, c.want))
	if c.pooled {
		// only Remove removes replicas
		spec.SetReplicas(&next, max(spec.Replicas(c.want), spec.Replicas(live.Spec)))
	}
	if spec.Replicas(live.Spec) == 0 && live.Spec.Labels[spec.LabelStaged] == "" {
		next.TaskTemplate.ForceUpdate++ // otherwise nothing replaces a task that is still about to end
	}
	if spec.IdentityOf(live).Run == c.run && live.Spec.Labels[spec.LabelStaged] == "" {
		if live.Spec.Labels[spec.LabelStop] != "" {
			return next, false // it stays stopped in this run
		}
		keepLabels(next.Labels, live.Spec.Labels, spec.LabelRestarts, spec.LabelStarted, spec.LabelRestarted)
	}
	return next, !spec.Equal(next, live.Spec)
}
