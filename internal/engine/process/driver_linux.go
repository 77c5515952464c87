package process

import (
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Driver returns the driver of this engine, which runs the residents of clusters from program. An endpoint is a state
// directory, and takes precedence over that of the settings.
func Driver(program Program) engine.Driver {
	d := described
	d.Open = func(cluster domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
		return Open(cluster, settings, program)
	}
	d.Clusters = clusters
	return d
}
