package swarm

import (
	"context"
	"errors"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// engines returns the Engines that can be reached, by the ID of their nodes: that of the manager, and those of the
// cluster's hosts with addresses, which the controller has no way to.
func (e *Engine) engines(ctx context.Context, m manager) (map[string]client.APIClient, error) {
	engines := map[string]client.APIClient{}
	document, err := engine.Cluster(ctx, e)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	for _, host := range document.Spec.Hosts {
		if host.Address == "" || host.ID == "" || e.connection.settings.Controller {
			continue
		}
		reached, err := e.connection.client(host.Address)
		if err != nil {
			return nil, err
		}
		engines[host.ID] = reached
	}
	info, err := m.Info(ctx)
	if err != nil {
		return nil, err
	}
	engines[info.Swarm.NodeID] = m
	return engines, nil
}
