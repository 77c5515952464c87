package top

import (
	"flag"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	defaultInterval = 2 * time.Second
	// shortestInterval is how often agents measure.
	shortestInterval = time.Second
)

// options are the parsed arguments.
type options struct {
	cluster  command.Cluster
	interval time.Duration
	once     bool
}

const usage = `Shows the hosts, GPUs and members of a cluster with their current usage, and refreshes until you quit.

  terraform-provider-trainyard top [--engine ENGINE] [--endpoint ENDPOINT] [--cluster NAME]

`

func parse(args []string, engines engine.Registry) (options, error) {
	var o options
	flags := flag.NewFlagSet("top", flag.ContinueOnError)
	o.cluster.AddFlags(flags, engines)
	flags.DurationVar(&o.interval, "interval", defaultInterval, "`time` between refreshes")
	flags.BoolVar(&o.once, "once", false,
		"print one frame as plain text and exit, as if standard output were not a terminal")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("top takes no arguments, got %q: see top --help", flags.Arg(0))
	case o.interval < shortestInterval:
		return o, fmt.Errorf("--interval %s is too short: hosts are measured every second; use %s or more", o.interval,
			shortestInterval)
	}
	return o, nil
}
