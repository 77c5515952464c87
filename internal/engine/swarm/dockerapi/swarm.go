package dockerapi

import (
	"context"
	"fmt"
	"maps"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// EngineName is the engine's name in a configuration.
const EngineName = "swarm"

// Swarm is a cluster's Swarm, with the connection to it and the reads of it: the base of each part of the engine.
type Swarm struct {
	// Cluster is the cluster's name.
	Cluster    string
	Connection *Connection
	Reads      Reads
	// Items is the cluster's store.
	Items engine.Store
}

// Live returns the Swarm without cached reads.
func (s Swarm) Live() Swarm {
	s.Reads = Live(s.Connection)
	return s
}

// Engines returns the reachable Engines, see [Connection.Engines].
func (s Swarm) Engines(ctx context.Context, m Manager) (map[string]client.APIClient, error) {
	return s.Connection.Engines(ctx, s.Items, m)
}

// ReadyEngines returns the reachable Engines of the ready nodes, by node ID.
func (s Swarm) ReadyEngines(ctx context.Context) (map[string]client.APIClient, error) {
	m, err := s.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	engines, err := s.Engines(ctx, m)
	if err != nil {
		return nil, err
	}
	nodes, err := s.Reads.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	states := NewNodes(nodes)
	maps.DeleteFunc(engines, func(id string, _ client.APIClient) bool {
		return states[id].Status.State != swarm.NodeStateReady
	})
	return engines, nil
}

// Inspect returns the Swarm itself.
func (s Swarm) Inspect(ctx context.Context) (is swarm.Swarm, err error) {
	err = s.Connection.Ask(ctx, func(m Manager) (err error) {
		is, err = m.SwarmInspect(ctx)
		return err
	})
	return is, err
}

// Secrets returns the secret objects of the Swarm, without their values.
func (s Swarm) Secrets(ctx context.Context) (found []swarm.Secret, err error) {
	err = s.Connection.Ask(ctx, func(m Manager) (err error) {
		found, err = m.SecretList(ctx, swarm.SecretListOptions{})
		return err
	})
	return found, err
}

// Services returns the services of the Swarm by name, never from earlier reads.
func (s Swarm) Services(ctx context.Context) (map[string]swarm.Service, error) {
	list, err := s.Live().Reads.Services(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]swarm.Service, len(list))
	for _, service := range list {
		byName[service.Spec.Name] = service
	}
	return byName, nil
}

// UpdateAttempts bounds the attempts to update a service that others change at the same time.
const UpdateAttempts = 10

// UpdateService changes a service to what next returns, if that is a change. If somebody else changes it meanwhile,
// next is called again with the new version.
func (s Swarm) UpdateService(
	ctx context.Context, m Manager, live swarm.Service, name, auth string,
	next func(live swarm.Service) (swarm.ServiceSpec, bool),
) error {
	for range UpdateAttempts {
		if live.ID == "" {
			var err error
			if live, _, err = m.ServiceInspectWithRaw(ctx, name, swarm.ServiceInspectOptions{}); err != nil {
				return fmt.Errorf("reading service %q: %w", name, err)
			}
		}
		if !spec.BelongsTo(live, s.Cluster) {
			return fmt.Errorf("service %q no longer belongs to cluster %q: remove it, or rename the group or the role",
				name, s.Cluster)
		}
		spec, changed := next(live)
		if !changed {
			return nil
		}
		options := swarm.ServiceUpdateOptions{EncodedRegistryAuth: auth}
		if auth == "" {
			options.RegistryAuthFrom = swarm.RegistryAuthFromSpec
		}
		_, err := m.ServiceUpdate(ctx, live.ID, live.Version, spec, options)
		switch {
		case err == nil:
			return nil
		case !OutOfSequence(err):
			return fmt.Errorf("updating service %q: %w", name, err)
		}
		live = swarm.Service{}
	}
	return fmt.Errorf("updating service %q: others changed it %d times in a row", name, UpdateAttempts)
}

// RemoveObject removes an object of the Swarm. It is not an error if that is already gone.
func (s Swarm) RemoveObject(ctx context.Context, what string, remove func(m Manager) error) error {
	if err := s.Connection.Ask(ctx, remove); err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("removing %s: %w", what, err)
	}
	return nil
}
