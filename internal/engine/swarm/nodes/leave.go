package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

const (
	// downPatience bounds the attempt to reach the Engine of a node that is down.
	downPatience = 10 * time.Second
	// networkPatience bounds how long to wait for a leftover network of the same name.
	networkPatience = 30 * time.Second
)

// leave takes a host that Form added out of the Swarm: what runs there ends, within its grace period.
func (w *work) leave(ctx context.Context, s step) error {
	if s.node.Status.State == swarm.NodeStateReady {
		if err := w.hosts.drain(ctx, s.node.ID); err != nil {
			return err
		}
	}
	if err := w.hosts.takeOut(ctx, s.spec, s.node); err != nil {
		return err
	}
	return w.forget(ctx, s.host)
}

// forget records that a host is out of the Swarm.
func (w *work) forget(ctx context.Context, host string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.joined, host)
	return w.hosts.writeJoined(ctx, w.joined)
}

// drain makes a node end what it runs, and waits for it.
func (e Hosts) drain(ctx context.Context, id string) error {
	err := e.amend(ctx, id, func(live swarm.NodeSpec) swarm.NodeSpec {
		live.Availability = swarm.NodeAvailabilityDrain
		return live
	})
	if err != nil {
		return err
	}
	return dockerapi.Until(ctx, "the host's tasks to end", func() (bool, error) {
		tasks, err := e.Reads.Tasks(ctx)
		if err != nil {
			return false, err
		}
		for _, task := range tasks {
			if task.NodeID == id && !dockerapi.Ended(task) {
				return false, nil
			}
		}
		return true, nil
	})
}

// takeOut makes a host leave the Swarm, and removes its node. A host that is down is only removed.
func (e Hosts) takeOut(ctx context.Context, host domain.Host, node swarm.Node) error {
	if err := e.leaveSwarm(ctx, host, node); err != nil && node.Status.State == swarm.NodeStateReady {
		return fmt.Errorf("leaving the Swarm: %w", err)
	}
	err := e.Connection.Ask(ctx, func(m dockerapi.Manager) error {
		return m.NodeRemove(ctx, node.ID, swarm.NodeRemoveOptions{Force: true})
	})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("removing its node from the Swarm: %w", err)
	}
	return nil
}

// leaveSwarm makes the Engine of a host leave the Swarm, once it knows that it is no longer a manager.
func (e Hosts) leaveSwarm(ctx context.Context, host domain.Host, node swarm.Node) error {
	if host.Address == "" {
		return errors.New(
			"the address of its Docker Engine is unknown; have it leave (docker swarm leave) and apply again",
		)
	}
	if node.Status.State != swarm.NodeStateReady {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, downPatience)
		defer cancel()
	}
	at, err := e.Connection.Client(host.Address)
	if err != nil {
		return err
	}
	info, err := at.Info(ctx)
	switch {
	case err != nil:
		_, err = dockerapi.Explain(host.Address, err)
		return err
	case info.Swarm.LocalNodeState == swarm.LocalNodeStateInactive:
		return nil
	case info.Swarm.NodeID != node.ID:
		return fmt.Errorf("the Docker Engine at %s belongs to another node, %s", host.Address, info.Swarm.NodeID)
	}
	if node.Status.State == swarm.NodeStateReady {
		e.daemons.ClearHistories(ctx, at)
	}
	return dockerapi.Until(ctx, "the host to leave the Swarm", func() (bool, error) {
		err := at.SwarmLeave(ctx, false)
		if !cerrdefs.IsUnavailable(err) {
			return err == nil, err
		}
		// It is in no Swarm, or still takes itself for a manager.
		info, infoErr := at.Info(ctx)
		return infoErr == nil && info.Swarm.LocalNodeState == swarm.LocalNodeStateInactive, err
	})
}

// createNetwork creates the cluster's network, and returns once it has its subnet, which the Swarm assigns after a
// moment. An Engine that has just left a Swarm may still have that Swarm's network of the same name: it lists it, and
// refuses another until its last container is gone.
func (e Hosts) createNetwork(ctx context.Context, want domain.Network) error {
	name := spec.NetworkName(e.Cluster)
	is, err := e.Inspect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, networkPatience)
	defer cancel()
	var failure error
	created := "" // its ID
	err = dockerapi.Until(ctx, "it to exist, and no other of the same name", func() (bool, error) {
		var err error
		if created == "" {
			err = e.Connection.Ask(ctx, func(m dockerapi.Manager) error {
				response, err := m.NetworkCreate(ctx, name, networkOptions(e.Cluster, want))
				created = response.ID
				return err
			})
		}
		if err != nil && !cerrdefs.IsConflict(err) {
			failure = err
			return true, nil
		}
		networks, listErr := e.Reads.Networks(ctx)
		live, found := dockerapi.OwnNetwork(networks, e.Cluster)
		return found && (live.ID == created || live.Created.After(is.CreatedAt)) &&
			dockerapi.ReadNetwork(live) == want, errors.Join(err, listErr)
	})
	if err = errors.Join(failure, err); err != nil {
		return fmt.Errorf("creating network %s (%s): %w", name, describeNetwork(want), err)
	}
	return nil
}

// removeNetwork removes the cluster's network, which may be in use until the last containers are gone.
func (e Hosts) removeNetwork(ctx context.Context) error {
	return dockerapi.Until(ctx, "network "+spec.NetworkName(e.Cluster)+" to be no longer in use", func() (bool, error) {
		networks, err := e.Reads.Networks(ctx)
		if err != nil {
			return false, err
		}
		live, found := dockerapi.OwnNetwork(networks, e.Cluster)
		if !found {
			return true, nil
		}
		err = e.Connection.Ask(ctx, func(m dockerapi.Manager) error { return m.NetworkRemove(ctx, live.ID) })
		return err == nil || cerrdefs.IsNotFound(err), err
	})
}

// foreignUsers returns other owners' services that use a network.
func foreignUsers(services []swarm.Service, cluster string, n network.Summary) []string {
	var users []string
	for _, service := range services {
		if uses(service, n) && !spec.BelongsTo(service, cluster) {
			users = append(users, service.Spec.Name)
		}
	}
	return users
}
