package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Open returns the engine of a cluster, without reaching out to it. The reference's own engine is not looked at.
type Open func(cluster domain.ClusterRef, settings Settings) (Engine, error)

// List returns the names of the clusters that an engine finds with these settings, sorted. Where there are none, it is [ErrNotFound] and says
// where it looked.
type List func(ctx context.Context, settings Settings) ([]string, error)

// Registry holds the known engines by name.
type Registry map[string]Open

// Names returns the names of the engines, sorted.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r)) }

// Open returns the engine of a cluster, or an error that lists the known engines.
func (r Registry) Open(cluster domain.ClusterRef, settings Settings) (Engine, error) {
	open, known := r[cluster.Engine]
	if !known {
		return nil, fmt.Errorf("%q is not an engine; known are %q", cluster.Engine, r.Names())
	}
	return open(cluster, settings)
}
