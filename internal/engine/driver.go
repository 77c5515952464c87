package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Driver opens and finds clusters of one engine.
type Driver struct {
	// Open returns the engine of a cluster, without any I/O. It ignores the engine that the reference names.
	Open func(cluster domain.ClusterRef, settings Settings) (Engine, error)
	// Clusters returns the sorted names of the clusters at endpoint; for an empty endpoint, at the engine's default
	// location. If there are none, the error is [ErrNotFound] and says where it looked.
	Clusters func(ctx context.Context, endpoint string, settings Settings) ([]string, error)
	// Endpoint describes the engine's endpoint, such as "state directory", and Lookup where clusters are looked for
	// without one.
	Endpoint, Lookup string
	// Schemes are the URL schemes that endpoints may have.
	Schemes []string
	// Default marks the engine that is used when none is named.
	Default bool
}

// Registry holds the known engines by name.
type Registry map[string]Driver

// Names returns the sorted names of the engines.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r)) }

// Say joins a description of each engine, in the order of Names, such as "state directory (process)".
func (r Registry) Say(of func(Driver) string) string {
	var parts []string
	for _, name := range r.Names() {
		parts = append(parts, fmt.Sprintf("%s (%s)", of(r[name]), name))
	}
	return strings.Join(parts, ", ")
}

// Default returns the name of the engine that is used when none is named.
func (r Registry) Default() string {
	for name, driver := range r {
		if driver.Default {
			return name
		}
	}
	return ""
}

// Driver returns the driver of an engine, or an error that lists the known engines.
func (r Registry) Driver(name string) (Driver, error) {
	driver, known := r[name]
	if !known {
		return Driver{}, fmt.Errorf("unknown engine %q; use one of %q", name, r.Names())
	}
	return driver, nil
}

// Open returns the engine of a cluster, or an error that lists the known engines.
func (r Registry) Open(cluster domain.ClusterRef, settings Settings) (Engine, error) {
	driver, err := r.Driver(cluster.Engine)
	if err != nil {
		return nil, err
	}
	return driver.Open(cluster, settings)
}
