package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
)

// Dissolve removes what is left of the cluster in the Swarm, and takes out the hosts that Form added. The host whose
// Engine is used goes last; if it is the last manager, the Swarm ends with it.
func (e Hosts) Dissolve(ctx context.Context) error {
	e = e.live()
	f, err := e.look(ctx, domain.Cluster{Name: e.Cluster})
	if err != nil {
		return err
	}
	if f.missing != nil {
		if errors.Is(f.missing, engine.ErrNotFound) {
			return nil // there is no Swarm, and so no cluster
		}
		return fmt.Errorf("%w. If the Swarm no longer exists, remove the cluster from the state: terraform state rm",
			f.missing)
	}
	e.Connection.Learn(f.stored.Hosts)
	if err := e.recallJoined(ctx, f); err != nil {
		return err
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	info, err := m.Info(ctx)
	if err != nil {
		return err
	}
	steps, last, err := f.departure(e.Cluster, info.Swarm.NodeID)
	if err != nil {
		return err
	}
	if err := e.empty(ctx, f); err != nil {
		return err
	}
	w := &work{hosts: e, cluster: e.Cluster, joined: maps.Clone(f.joined)}
	if err := w.take(ctx, steps); err != nil {
		return err
	}
	// The documents are removed last: until then they record a host that could not leave.
	if len(last) == 1 {
		return m.SwarmLeave(ctx, true)
	}
	if err := w.take(ctx, last); err != nil {
		return err
	}
	if err := e.writeJoined(ctx, nil); err != nil {
		return err
	}
	return e.Items.Delete(ctx, engine.Key{Kind: domain.ClusterKind})
}

// departure returns the steps by which the hosts that Form added leave, and separately those for the host whose Engine
// is used: a single one if the Swarm ends with it.
func (f *facts) departure(cluster, asked string) (steps, last []step, err error) {
	goes := f.formerSteps(domain.Cluster{Name: cluster}, nil)
	sortSteps(goes)
	leaving := map[string]bool{}
	for _, s := range goes {
		leaving[s.node.ID] = leaving[s.node.ID] || s.do == takeOut
		if s.node.ID == asked && s.do != amend {
			last = append(last, s)
		} else {
			steps = append(steps, s)
		}
	}
	var remaining []string
	for _, node := range f.nodes {
		switch {
		case leaving[node.ID]:
		case dockerapi.IsManager(node):
			// Somebody else's manager remains.
			var problems domain.Problems
			checkQuorum(&problems, f.nodes, slices.Concat(steps, last), false)
			return steps, last, problems.Err()
		case node.Status.State == swarm.NodeStateReady && !f.isStored(node):
			remaining = append(remaining, dockerapi.HostName(node))
		}
	}
	if len(remaining) > 0 {
		return nil, nil, fmt.Errorf("the Swarm was created for cluster %q and would end with it, but has nodes that "+
			"are not the cluster's: %s. Have them leave it first (docker swarm leave), or make one of them a manager "+
			"(docker node promote)",
			cluster, domain.Enumerate(remaining))
	}
	last = slices.DeleteFunc(last, func(s step) bool { return s.do == demote })
	return steps, last, nil
}

// isStored reports whether a node is one of the stored cluster's hosts.
func (f *facts) isStored(node swarm.Node) bool {
	for name := range f.stored.Hosts {
		if known, found := f.known(name); found && known.ID == node.ID {
			return true
		}
	}
	return false
}

// empty removes everything that the cluster has in the Swarm, except its documents.
func (e Hosts) empty(ctx context.Context, f *facts) error {
	if err := e.daemons.StopController(ctx); err != nil {
		return err
	}
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return err
	}
	if live, found := dockerapi.OwnNetwork(f.networks, e.Cluster); found {
		if users := foreignUsers(services, e.Cluster, live); len(users) > 0 {
			return fmt.Errorf("network %s is in use by services that are not the cluster's: %s; remove them, or "+
				"detach them from the network", live.Name, domain.Enumerate(users))
		}
	}
	own := slices.DeleteFunc(services, func(s swarm.Service) bool { return !spec.BelongsTo(s, e.Cluster) })
	err = dockerapi.InParallel(ctx, own, func(ctx context.Context, service swarm.Service) error {
		return e.RemoveObject(ctx, "service "+service.Spec.Name,
			func(m dockerapi.Manager) error { return m.ServiceRemove(ctx, service.ID) })
	})
	if err != nil {
		return err
	}
	err = e.members.AwaitTasks(ctx, func(task swarm.Task) bool {
		return task.Spec.ContainerSpec != nil && task.Spec.ContainerSpec.Labels[spec.LabelCluster] == e.Cluster
	})
	if err != nil {
		return err
	}
	if engines, err := e.ReadyEngines(ctx); err == nil { // otherwise they are left behind
		e.daemons.ClearHistories(ctx, slices.Collect(maps.Values(engines))...)
	}
	if err := e.removeNetwork(ctx); err != nil {
		return err
	}
	return e.removeFiles(ctx)
}

// removeFiles removes the cluster's config objects and secrets that are neither documents nor locks.
func (e Hosts) removeFiles(ctx context.Context) error {
	configs, err := dockerapi.Live(e.Connection).Configs(ctx)
	if err != nil {
		return err
	}
	configs = slices.DeleteFunc(slices.Clone(configs), func(c swarm.Config) bool {
		return (c.Spec.Labels[spec.LabelCluster] != e.Cluster || store.IsKept(c)) &&
			!spec.IsAttachment(c.Spec.Annotations, e.Cluster, spec.KindFile, "")
	})
	err = dockerapi.InParallel(ctx, configs, func(ctx context.Context, config swarm.Config) error {
		return e.RemoveObject(ctx, "config "+config.Spec.Name,
			func(m dockerapi.Manager) error { return m.ConfigRemove(ctx, config.ID) })
	})
	if err != nil {
		return err
	}
	secrets, err := e.Secrets(ctx)
	if err != nil {
		return err
	}
	secrets = slices.DeleteFunc(secrets, func(s swarm.Secret) bool {
		return s.Spec.Labels[spec.LabelCluster] != e.Cluster &&
			!spec.IsAttachment(s.Spec.Annotations, e.Cluster, spec.KindSecret, "") &&
			!spec.IsAttachment(s.Spec.Annotations, e.Cluster, spec.KindAgent, "")
	})
	return dockerapi.InParallel(ctx, secrets, func(ctx context.Context, secret swarm.Secret) error {
		return e.RemoveObject(ctx, "secret "+secret.Spec.Name,
			func(m dockerapi.Manager) error { return m.SecretRemove(ctx, secret.ID) })
	})
}
