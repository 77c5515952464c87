package swarm

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
)

// objects returns the config objects of the cluster but for records, as they are now.
func (e *Engine) objects(ctx context.Context) ([]swarm.Config, error) {
	return e.findConfigs(ctx, filters.Arg("label", labelCluster+"="+e.cluster.Name))
}

// clusterObjects returns the config objects that are the cluster's document, as they are now.
func (e *Engine) clusterObjects(ctx context.Context) ([]swarm.Config, error) {
	return e.findConfigs(ctx, filters.Arg("label", labelCluster+"="+e.cluster.Name), filters.Arg("label", labelKind+"="+kindCluster))
}

// configNamed returns the config object of a name as it is now, whoever's it is, or nil.
func (e *Engine) configNamed(ctx context.Context, name string) (*swarm.Config, error) {
	configs, err := e.findConfigs(ctx, filters.Arg("name", name)) // those whose names begin so
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

func (e *Engine) findConfigs(ctx context.Context, by ...filters.KeyValuePair) ([]swarm.Config, error) {
	find := ask(e.connection, func(ctx context.Context, m manager) ([]swarm.Config, error) {
		return m.ConfigList(ctx, swarm.ConfigListOptions{Filters: filters.NewArgs(by...)})
	})
	return find(ctx)
}

// removeConfig removes a config object. One that is gone is fine.
func (e *Engine) removeConfig(ctx context.Context, id string) error {
	m, err := e.manager(ctx)
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
