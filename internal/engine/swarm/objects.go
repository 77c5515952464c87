package swarm

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
)

// configsWith lists the config objects that filters select, as they are now.
func (c *connection) configsWith(by ...filters.KeyValuePair) list[swarm.Config] {
	return ask(c, func(ctx context.Context, m manager) ([]swarm.Config, error) {
		return m.ConfigList(ctx, swarm.ConfigListOptions{Filters: filters.NewArgs(by...)})
	})
}

// configNamed returns the config object of a name as it is now, whoever's it is, or nil.
func (c *connection) configNamed(ctx context.Context, name string) (*swarm.Config, error) {
	configs, err := c.configsWith(filters.Arg("name", name))(ctx) // those whose names begin so
	if err != nil {
		return nil, err
	}
	for _, config := range configs {
		if strings.EqualFold(config.Spec.Name, name) { // the Swarm takes them for the same
			return &config, nil
		}
	}
	return nil, nil
}

// removeConfig removes a config object. One that is gone is fine.
func (c *connection) removeConfig(ctx context.Context, id string) error {
	m, err := c.manager(ctx)
	if err != nil {
		return err
	}
	if err := m.ConfigRemove(ctx, id); err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("config object %s can't be removed: %w", id, err)
	}
	return nil
}

// foreign returns the error for a name that something has which is not Trainyard's.
func foreign(name string) error {
	return fmt.Errorf("the Swarm has a config object %q that is not Trainyard's, or has lost its labels; it is left alone: remove it (docker config rm %s), "+
		"or choose another name for the cluster or the group", name, name)
}
