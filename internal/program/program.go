// Package program is the part that runs on the hosts of a cluster, whichever program contains it: the provider, or
// trainyard-agent, which is built to read GPUs, and lacks the parts for Terraform and for people.
package program

import (
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
)

// Engines returns all engines of a program of this version. A new engine is one line here.
func Engines(version string) engine.Registry {
	return engine.Registry{
		process.Name: process.Driver(process.Program{Version: version}),
		swarm.Name:   swarm.Driver(swarm.Program{Version: version}),
		systemd.Name: systemd.Driver(systemd.Program{Local: localNode}),
	}
}
