package dockerapi

import (
	"context"
	"errors"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Engines returns the reachable Engines by node ID: that of the manager, and those of hosts with an address in the
// cluster's document, which the controller can't reach.
func (c *Connection) Engines(
	ctx context.Context, documents engine.Store, m Manager,
) (map[string]client.APIClient, error) {
	engines := map[string]client.APIClient{}
	document, err := engine.Cluster(ctx, documents)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	for _, host := range document.Spec.Hosts {
		if host.Address == "" || host.ID == "" || c.Settings.Controller {
			continue
		}
		reached, err := c.Client(host.Address)
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
