// Command terraform-provider-trainyard is a Terraform provider for training infrastructure, and the program that runs
// on its hosts.
//
// Terraform starts it without arguments. The engine "process" starts it as "supervise", which runs the members of a
// cluster. All engines start it as "controller", which acts for the cluster between two applies, and as "agent", which
// measures a host. On hosts of the engine "systemd", it answers calls as "relay".
//
// The other commands are for people: "top" shows what a cluster does; "autoscale" shows what policies decided, and
// trains their models; "promote" moves a cluster's store to another host; "forget" makes a cluster forget a host that
// is gone for good; "logs" prints the logs of a group's members and exits with the group's exit code; "report" writes a
// cluster to an HTML file; "results" downloads a folder of a member; "sweep" shows, pauses, resumes and cancels the
// runs of sweeps, and downloads their results; "doctor" says what hosts lack.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/doctor"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
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

// version is set by the linker in a release build.
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
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return serve(args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	engines := program.Engines(version)
	if args[0] == "help" {
		return help(os.Stdout)
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, args[1:], engines)
		}
	}
	return program.Run(ctx, version, args)
}

// commands are those for people.
var commands = []struct {
	name, summary string
	run           func(ctx context.Context, args []string, engines engine.Registry) error
}{
	{"autoscale", "explain the decisions of an autoscaling policy, or train its model",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			if len(args) > 0 && args[0] == "train" {
				return trainctl.Run(ctx, args[1:], os.Stdout)
			}
			return explain.Run(ctx, args, engines, os.Stdout)
		}},
	{"doctor", "check whether hosts are ready for a Swarm or as bare hosts",
		func(ctx context.Context, args []string, _ engine.Registry) error {
			return doctor.Run(ctx, args, systemd.Program{}, os.Stdout)
		}},
	{"forget", "remove a bare host that is gone for good from its cluster",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return forget.Run(ctx, args, engines, os.Stdout)
		}},
	{"logs", "print the logs of a group's members, and exit with the group's exit code",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return logs.Run(ctx, args, engines, os.Stdin, os.Stdout)
		}},
	{"promote", "move a cluster's store to another bare host",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return promote.Run(ctx, args, engines, os.Stdout)
		}},
	{"report", "write a report on a cluster to an HTML file",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return report.Run(ctx, args, engines, os.Stdout)
		}},
	{"results", "download a folder of a member",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return results.Run(ctx, args, engines, os.Stdout)
		}},
	{"sweep", "show, pause, resume or cancel the runs of sweeps, or download their results",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return sweepctl.Run(ctx, args, engines, os.Stdout)
		}},
	{"top", "show hosts, GPUs and members in the terminal",
		func(ctx context.Context, args []string, engines engine.Registry) error {
			return top.Run(ctx, args, engines, os.Stdout)
		}},
}

// help lists the commands.
func help(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w,
		"A Terraform provider for training infrastructure. Terraform starts it; these commands are for you:\n\n")
	for _, c := range commands {
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", c.name, c.summary)
	}
	_, _ = fmt.Fprint(w, "\nterraform-provider-trainyard COMMAND --help shows a command's flags.\n")
	return w.Flush()
}

// serve serves Terraform's calls until Terraform is done or gone.
func serve(args []string) error {
	flags := flag.NewFlagSet("terraform-provider-trainyard", flag.ContinueOnError)
	flags.Usage = func() {
		_ = help(flags.Output())
		flags.PrintDefaults()
	}
	debug := flags.Bool("debug", false, "run with support for debuggers such as delve")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	return provider.Serve(version, program.Engines(version), *debug)
}
