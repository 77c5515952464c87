package program

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/controller"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/node"
)

// Run runs a command until it has finished or ctx is done: "supervise", which runs members for the engines of single
// machines; "relay", which serves the engine "systemd" on a host; "controller", which acts for a cluster between two
// applies; or "agent", which measures a host.
func Run(ctx context.Context, version string, args []string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	command, args := args[0], args[1:]
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	stateDir := flags.String("state-dir", "", "folder that holds the state directories of all clusters")
	cluster := flags.String("cluster", "", "name of the cluster")
	switch command {
	case "relay":
		return node.Serve(ctx)
	case "supervise":
		asUnits := flags.Bool("units", false, "run members as transient systemd units; requires root")
		as := flags.String("version", version, "version that distinguishes this supervisor from its successors")
		if err := flags.Parse(args); err != nil {
			return err
		}
		dir, err := statedir.Open(*stateDir, *cluster)
		if err != nil {
			return err
		}
		return supervisor.Run(ctx, dir, supervisor.Options{Version: *as, Units: *asUnits}, log)
	case "controller":
		engines := Engines(version)
		name := flags.String("engine", engines.Default(), "engine of the cluster")
		var options controller.Options
		flags.StringVar(&options.Metrics, "metrics", "", "address to serve Prometheus metrics at, such as "+
			"127.0.0.1:9466, or a range such as 10.0.0.0/24:9466 for this host's own address in it; empty for none")
		if err := flags.Parse(args); err != nil {
			return err
		}
		options.Cluster = *cluster
		if err := trustRoots(); err != nil {
			return err
		}
		e, err := engines.Open(domain.ClusterRef{Engine: *name, Name: *cluster},
			engine.Settings{StateDir: *stateDir, Controller: true})
		if err != nil {
			return err
		}
		return controller.Run(ctx, e, options, log)
	case "agent":
		// On a host, NVIDIA's library may have to load the driver, for which it uses a setuid program.
		if telemetry.InContainer() {
			if err := renouncePrivileges(); err != nil {
				return err
			}
		}
		return agent.Run(ctx, args, os.Stdout, log)
	}
	return fmt.Errorf("unknown command %q: terraform-provider-trainyard help lists the commands; supervise, relay, "+
		"controller and agent are run by Trainyard on hosts", command)
}

// localNode connects to this host's own node of the engine "systemd", within this process.
var localNode = node.Dial
