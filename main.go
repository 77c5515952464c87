// Command terraform-provider-trainyard is a Terraform provider for training infrastructure, and the program that runs
// on its hosts.
//
// Terraform starts it without arguments. The engine "process" starts it as "supervise", which runs the members of a
// cluster. All engines start it as "controller", which acts for the cluster between two applies, and as "agent", which
// measures a host. On hosts of the engine "systemd", it answers calls as "relay".
//
// The other commands are for people: "top" shows what a cluster does; "autoscale" shows what policies decided, and
// trains their models; "promote" moves a cluster's store to another host; "forget" makes a cluster forget a host that
// is gone for good; "logs" prints the logs of a group's members and exits with the group's exit code; "report"
// writes a cluster to an HTML file; "results" downloads a folder of a member; "sweep" shows, pauses, resumes and cancels
// the runs of sweeps, and downloads their results.
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
	"github.com/trainyard/terraform-provider-trainyard/internal/report"
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
	case "report":
		return report.Run(ctx, args[1:], engines, os.Stdout)
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
	debug := flags.Bool("debug", false, "run with support for debuggers such as delve")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return provider.Serve(version, program.Engines(version), *debug)
}
