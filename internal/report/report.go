// Package report is the command "report": a cluster at one moment as a single HTML file, to be kept, sent or read after
// the cluster is gone.
//
// What an engine says (reading.go) becomes a page (page.go, hosts.go, groups.go, sweeps.go), which a template shows
// (html.go). Only the reading does I/O.
package report

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

const usage = `Writes the current state of a cluster to an HTML file: hosts and GPUs, groups, autoscaling policies,
sweeps, and what needs attention.

  terraform-provider-trainyard report [--engine ENGINE] [--endpoint ENDPOINT] [--cluster NAME] [-o FILE]

The file is self-contained. It includes the last log lines of failed members: look at it before you publish it.

`

type options struct {
	cluster command.Cluster
	// output is the file to write: by default the cluster's name with ".html"; "-" is standard output.
	output string
}

// Run writes the report that the arguments ask for.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	o, err := parse(args, engines)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	name, e, err := o.cluster.Find(ctx, engines)
	if err != nil {
		return err
	}
	r, err := read(ctx, name, e.Snapshot())
	if err != nil {
		return err
	}
	file := cmp.Or(o.output, name+".html")
	if file == "-" {
		return write(out, r.page())
	}
	if err := command.WriteFile(file, func(to io.Writer) error { return write(to, r.page()) }); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, printable.Line(file))
	return err
}

func parse(args []string, engines engine.Registry) (options, error) {
	var o options
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	o.cluster.AddFlags(flags, engines)
	const output = "`file` to write, or - for standard output; defaults to the cluster's name with .html"
	flags.StringVar(&o.output, "output", "", output)
	flags.StringVar(&o.output, "o", "", output)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("report takes no arguments, got %q: see report --help", flags.Arg(0))
	}
	return o, nil
}
