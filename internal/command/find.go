package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Engines are where clusters are found, and how they are opened.
type Engines struct {
	Open engine.Registry
	// Lists are by the names of the engines.
	Lists map[string]engine.List
}

// Find returns the name of the cluster that the flags choose, and its engine. One that is named need not be within reach at the moment.
func (c Cluster) Find(ctx context.Context, engines Engines) (string, engine.Engine, error) {
	if err := c.reach(); err != nil {
		return "", nil, err
	}
	settings, list := engine.Settings{StateDir: c.StateDir}, engines.Lists[c.Engine]
	name := c.Name
	if name == "" {
		var err error
		if name, err = onlyOne(ctx, list, settings); err != nil {
			return "", nil, err
		}
	}
	e, err := engines.Open.Open(domain.ClusterRef{Engine: c.Engine, Name: name}, settings)
	if err != nil {
		return "", nil, err
	}
	_, err = e.Cluster(ctx)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		names, err := list(ctx, settings)
		if err != nil {
			return "", nil, explained(err)
		}
		return "", nil, fmt.Errorf("there is no cluster %q: choose one of %q by --cluster", name, names)
	case err != nil && !errors.Is(err, engine.ErrUnreachable):
		return "", nil, err
	}
	return name, e, nil
}

// onlyOne returns the only cluster that there is.
func onlyOne(ctx context.Context, list engine.List, settings engine.Settings) (string, error) {
	names, err := list(ctx, settings)
	switch {
	case errors.Is(err, engine.ErrUnreachable):
		return "", fmt.Errorf("%w; to wait for it, name the cluster by --cluster", err)
	case err != nil:
		return "", explained(err)
	case len(names) > 1:
		return "", fmt.Errorf("there are several clusters: choose one of %q by --cluster", names)
	}
	return names[0], nil
}

// explained says what to do where no cluster was found.
func explained(err error) error {
	if !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w; give the provider's state_dir by --state-dir, or by --docker-host a manager of the Swarm that the cluster is on", err)
}
