package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Find returns the name of the cluster that the flags choose, and its engine. A cluster that is named may be
// unreachable at the moment.
func (c Cluster) Find(ctx context.Context, engines engine.Registry) (string, engine.Engine, error) {
	driver, err := engines.Driver(c.Engine)
	if err != nil {
		return "", nil, fmt.Errorf("--engine: %w", err)
	}
	name := c.Name
	if name == "" {
		if name, err = c.onlyOne(ctx, driver); err != nil {
			return "", nil, err
		}
	}
	e, err := driver.Open(domain.ClusterRef{Engine: c.Engine, Name: name, Endpoint: c.Endpoint}, c.Settings())
	if err != nil {
		return "", nil, err
	}
	_, err = engine.Cluster(ctx, e)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		names, err := driver.Clusters(ctx, c.Endpoint, c.Settings())
		if err != nil {
			return "", nil, explained(err)
		}
		return "", nil, fmt.Errorf("no cluster %q: choose one of %q with --cluster", name, names)
	case err != nil && !errors.Is(err, engine.ErrUnreachable):
		return "", nil, err
	}
	return name, e, nil
}

// onlyOne returns the only cluster there is, or an error.
func (c Cluster) onlyOne(ctx context.Context, driver engine.Driver) (string, error) {
	names, err := driver.Clusters(ctx, c.Endpoint, c.Settings())
	switch {
	case errors.Is(err, engine.ErrUnreachable):
		return "", fmt.Errorf("%w; to wait for it, name the cluster with --cluster", err)
	case err != nil:
		return "", explained(err)
	case len(names) > 1:
		return "", fmt.Errorf("there are several clusters: choose one of %q with --cluster", names)
	}
	return names[0], nil
}

// explained adds what to do if no cluster was found.
func explained(err error) error {
	if !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w; use --engine and --endpoint to say which engine runs the cluster, and where", err)
}
