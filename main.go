// Command terraform-provider-trainyard is a Terraform provider for training infrastructure, and what it runs on hosts.
//
// Terraform starts it without arguments. The engine "process" starts it as "supervise", which runs the members of a
// cluster; all engines start it as "controller", which acts for the cluster between two applies, and as "agent", which
// measures a host. People start it as "top", which shows what a cluster does.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/controller"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider"
	"github.com/trainyard/terraform-provider-trainyard/internal/top"
)

// version is set when a release is built.
var version = "dev"

// engines returns all engines that this build knows. A new one is one line here.
func engines() engine.Registry {
	return engine.Registry{
		process.Name: process.Opener(process.Program{Version: version}),
		swarm.Name:   swarm.Opener(swarm.Program{Version: version}),
	}
}

// lists are how each of them tells which clusters there are.
func lists() map[string]engine.List {
	return map[string]engine.List{process.Name: process.Clusters, swarm.Name: swarm.Clusters}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-trainyard:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0][0] == '-' {
		return serve(args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))

	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	stateDir := flags.String("state-dir", "", "folder that holds the state directories of all clusters")
	cluster := flags.String("cluster", "", "name of the cluster")
	switch args[0] {
	case "supervise":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return supervisor.Run(ctx, statedir.Dir{Root: *stateDir, Cluster: *cluster}, version, log)
	case "top":
		return top.Run(ctx, args[1:], top.Engines{Open: engines(), Lists: lists()}, os.Stdout)
	case "agent":
		return agent.Run(ctx, args[1:], os.Stdout, log)
	case "controller":
		name := flags.String("engine", process.Name, "engine of the cluster")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		e, err := engines().Open(domain.ClusterRef{Engine: *name, Name: *cluster}, engine.Settings{StateDir: *stateDir, Controller: true})
		if err != nil {
			return err
		}
		return controller.Run(ctx, e, log)
	}
	return fmt.Errorf("unknown command %q: this program is run by Terraform, or as top, supervise, controller or agent", args[0])
}

// serve answers Terraform until it is done, or gone.
func serve(args []string) error {
	flags := flag.NewFlagSet("terraform-provider-trainyard", flag.ContinueOnError)
	debug := flags.Bool("debug", false, "keep running, to be reached from a debugger")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return provider.Serve(context.Background(), version, engines(), *debug)
}
