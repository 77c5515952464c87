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
	// File is the program's file; empty for that of this process. Agent is the agent's file; empty for the one next to
	// the program, see [telemetry.AgentProgram].
	File, Agent string
	// Version distinguishes programs: residents of another version are replaced at the next change of the cluster,
	// while members keep running.
	Version string
}

// Site describes the machine that a cluster runs on. The zero value is the machine that Terraform runs on.
type Site struct {
	// Supervise starts a supervisor that outlives this process, or does nothing if one runs. Without it, the supervisor
	// is started as a separate process.
	Supervise func(ctx context.Context) error
	// Controller are the arguments that give the controller its engine and endpoint. Without them the engine is [Name].
	Controller []string
	// Host is the name of this machine among the hosts of the cluster; empty if all of them are this machine.
	Host string
	// Elsewhere means that the controller runs on another host.
	Elsewhere bool
	// Units means that instances are units of systemd, through which agents measure their network traffic.
	Units bool
	// Environment is what members inherit instead of this process's environment.
	Environment map[string]string
	// Containers means that members with an image run from it, as containers.
	Containers bool
}

// described is the part of the driver that is the same on every operating system.
var described = engine.Driver{
	Endpoint: "state directory",
	Lookup:   "the provider's state_dir, else TRAINYARD_STATE_DIR, else the user's state folder", Default: true,
}

// refusing returns the driver for an operating system other than Linux: every call fails with the reason.
func refusing(goos string) engine.Driver {
	var reason domain.Problems
	reason.Add(domain.Path{"engine"}, "Engine not available on "+engine.System(goos),
		"the engine %q runs members as processes of the Linux machine that Terraform runs on: use the engine "+
			"\"swarm\", or run Terraform on Linux", Name)
	d := described
	d.Open = func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return nil, reason }
	d.Clusters = func(context.Context, string, engine.Settings) ([]string, error) { return nil, reason }
	return d
}
