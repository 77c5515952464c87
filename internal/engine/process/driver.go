// Package process is the engine that runs members as processes of this machine. It needs nothing installed.
//
// A cluster has three resident processes: the supervisor, which runs the members (package supervisor), and the
// controller and the agent, which the supervisor runs like members. The engine communicates with them through the files
// of a state directory (package statedir).
package process

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Name is the engine's name in a configuration.
const Name = "process"

// Program is what the supervisors and controllers of clusters are run from.
type Program struct {
	// File is the program's file; empty for that of the present process. Agent is that of the agent; empty for the
	// program's neighbour, see [telemetry.AgentProgram].
	File, Agent string
	// Version tells programs apart: residents of another version are replaced when a cluster is next changed. Members
	// go on.
	Version string
}

// Site is how a cluster comes to run on a machine. The zero value is that of the machine that Terraform runs on.
type Site struct {
	// Supervise starts a supervisor that outlives this process, or does nothing where one runs. Without it, one is
	// started as a process of its own.
	Supervise func(ctx context.Context) error
	// Controller are the arguments by which the controller is told which engine it is of and where. Without them the
	// engine is [Name].
	Controller []string
	// Host is the name of this machine among the hosts of the cluster; empty where all of them are this machine.
	Host string
	// Elsewhere tells that the controller runs on another host.
	Elsewhere bool
	// Units tells that instances are units of systemd, by which agents know what they receive and send.
	Units bool
	// Environment is what members take over, instead of what this process has.
	Environment map[string]string
	// Containers tells that members with an image are run from it, as containers.
	Containers bool
}

// described is the driver as far as it is the same on every operating system.
var described = engine.Driver{
	Endpoint: "state directory", Lookup: "the provider's state_dir, else TRAINYARD_STATE_DIR, else the user's state folder", Default: true,
}

// refusing returns the driver for an operating system other than Linux, which opens no cluster and says why.
func refusing(goos string) engine.Driver {
	var reason domain.Problems
	reason.Add(domain.Path{"engine"}, "Engine not available on "+engine.System(goos),
		"the engine %q runs members as processes of the Linux machine that Terraform runs on: use the engine \"swarm\", or run Terraform on Linux", Name)
	d := described
	d.Open = func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return nil, reason }
	d.Clusters = func(context.Context, string, engine.Settings) ([]string, error) { return nil, reason }
	return d
}
