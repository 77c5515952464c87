package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Driver is how a program gets at the clusters of an engine.
type Driver struct {
	// Open returns the engine of a cluster, without reaching out to it. The reference's own engine is not looked at.
	Open func(cluster domain.ClusterRef, settings Settings) (Engine, error)
	// Clusters returns the names of the clusters that are found at an endpoint, sorted; at an empty one, where the
	// engine looks by default. Where there are none, it is [ErrNotFound] and says where it looked.
	Clusters func(ctx context.Context, endpoint string, settings Settings) ([]string, error)
	// Endpoint says in words what an endpoint of the engine is, such as "state directory", and Lookup where clusters
	// are looked for without one.
	Endpoint, Lookup string
	// Schemes are those of the URLs that its endpoints may be.
	Schemes []string
	// Default marks the one engine that is meant where none is named.
	Default bool
}

// Registry holds the known engines by name.
type Registry map[string]Driver

// Names returns the names of the engines, sorted.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r)) }

// Say says something of each engine in the order of Names, such as "state directory (process)".
func (r Registry) Say(of func(Driver) string) string {
	var said []string
	for _, name := range r.Names() {
		said = append(said, fmt.Sprintf("%s (%s)", of(r[name]), name))
	}
	return strings.Join(said, ", ")
}

// Default returns the name of the engine that is meant where none is named.
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
		return Driver{}, fmt.Errorf("%q is not an engine; known are %q", name, r.Names())
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
