package dockerapi

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// ConfigsWith lists the config objects that filters select, as they are now.
func (c *Connection) ConfigsWith(by ...filters.KeyValuePair) List[swarm.Config] {
	return ask(c, func(ctx context.Context, m Manager) ([]swarm.Config, error) {
		return m.ConfigList(ctx, swarm.ConfigListOptions{Filters: filters.NewArgs(by...)})
	})
}

// PlannedConfigs lists the config objects that plans read: items, and members' files. Filters may exclude some.
func (c *Connection) PlannedConfigs(by ...filters.KeyValuePair) List[swarm.Config] {
	for _, prefix := range spec.PlannedPrefixes() {
		by = append(by, filters.Arg("name", prefix))
	}
	return c.ConfigsWith(by...)
}

// Labelled selects objects with a label.
func Labelled(label, value string) filters.KeyValuePair { return filters.Arg("label", label+"="+value) }

// ConfigNamed returns the current config object with this name, whoever owns it, or nil.
func (c *Connection) ConfigNamed(ctx context.Context, name string) (*swarm.Config, error) {
	configs, err := c.ConfigsWith(filters.Arg("name", name))(ctx) // lists all with this prefix
	if err != nil {
		return nil, err
	}
	for _, config := range configs {
		if strings.EqualFold(config.Spec.Name, name) { // the Swarm's names are case-insensitive
			return &config, nil
		}
	}
	return nil, nil
}

// RemoveConfig removes a config object. It is not an error if that is already gone.
func (c *Connection) RemoveConfig(ctx context.Context, id string) error {
	m, err := c.Manager(ctx)
	if err != nil {
		return err
	}
	if err := m.ConfigRemove(ctx, id); err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("removing config object %s: %w", id, err)
	}
	return nil
}

// Foreign returns the error for a name that belongs to something that is not Trainyard's.
func Foreign(name string) error {
	return fmt.Errorf("the Swarm already has a config object %q that is not Trainyard's, or has lost its labels: "+
		"remove it (docker config rm %s), "+
		"or rename the cluster or the group", name, name)
}
