// Command terraform-provider-trainyard is a Terraform provider for training infrastructure, and what it runs on hosts.
//
// Terraform starts it without arguments. The engine "process" starts it as "supervise", which runs the members of a
// cluster; all engines start it as "controller", which acts for the cluster between two applies, and as "agent", which
// measures a host; hosts of the engine "systemd" answer as "relay". People start it as "top", which shows what a
// cluster does, as "autoscale", which tells what policies decided and trains their models, as "promote", which has
// another host keep the store of a cluster, as "forget", by which a cluster forgets a host that is gone for good, as
// "logs", which writes what members write and exits as their group did, as "results", which fetches a folder of a
// member, and as "sweep", which shows, pauses, resumes and cancels the runs of sweeps, and fetches what they left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/explain"
	"github.com/trainyard/terraform-provider-trainyard/internal/forget"
	"github.com/trainyard/terraform-provider-trainyard/internal/logs"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/program"
	"github.com/trainyard/terraform-provider-trainyard/internal/promote"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider"
	"github.com/trainyard/terraform-provider-trainyard/internal/results"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweepctl"
	"github.com/trainyard/terraform-provider-trainyard/internal/top"
	"github.com/trainyard/terraform-provider-trainyard/internal/trainctl"
)

// version is set when a release is built.
var version = "dev"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-trainyard:", printable.Text(err.Error()))
		if exit, is := errors.AsType[*command.ExitError](err); is {
			os.Exit(exit.Code)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0][0] == '-' {
		return serve(args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	engines := program.Engines(version)
	switch args[0] {
	case "top":
		return top.Run(ctx, args[1:], engines, os.Stdout)
	case "autoscale":
		if len(args) > 1 && args[1] == "train" {
			return trainctl.Run(ctx, args[2:], os.Stdout)
		}
		return explain.Run(ctx, args[1:], engines, os.Stdout)
	case "forget":
		return forget.Run(ctx, args[1:], engines, os.Stdout)
	case "logs":
		return logs.Run(ctx, args[1:], engines, os.Stdin, os.Stdout)
	case "promote":
		return promote.Run(ctx, args[1:], engines, os.Stdout)
	case "results":
		return results.Run(ctx, args[1:], engines, os.Stdout)
	case "sweep":
		return sweepctl.Run(ctx, args[1:], engines, os.Stdout)
	}
	return program.Run(ctx, version, args)
}

// serve answers Terraform until it is done, or gone.
func serve(args []string) error {
	flags := flag.NewFlagSet("terraform-provider-trainyard", flag.ContinueOnError)
	debug := flags.Bool("debug", false, "keep running, to be reached from a debugger")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return provider.Serve(version, program.Engines(version), *debug)
}
