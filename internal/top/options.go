package top

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"
)

// The names of the engines that the flags choose between.
const (
	processEngine = "process"
	swarmEngine   = "swarm"
)

const (
	defaultInterval = 2 * time.Second
	// shortestInterval is how often agents measure.
	shortestInterval = time.Second
)

// options are what the arguments say.
type options struct {
	engine     string
	stateDir   string
	dockerHost string
	cluster    string
	interval   time.Duration
	once       bool
}

const usage = `Shows what the hosts, GPUs and members of a cluster do.

  terraform-provider-trainyard top [--state-dir DIR] [--cluster NAME]
  terraform-provider-trainyard top --docker-host ADDRESS [--cluster NAME]

`

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("top", flag.ContinueOnError)
	flags.StringVar(&o.stateDir, "state-dir", "", "state `directory` of the provider; its default where this is left out")
	flags.StringVar(&o.dockerHost, "docker-host", "", "`address` of a manager of a Docker Swarm, as DOCKER_HOST has it; empty for the Engine that docker itself would use")
	flags.StringVar(&o.cluster, "cluster", "", "`name` of the cluster; the only one there where this is left out")
	flags.DurationVar(&o.interval, "interval", defaultInterval, "`time` from one look to the next")
	flags.BoolVar(&o.once, "once", false, "print one frame as plain text, as is done where standard output is no terminal")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.engine = processEngine
	if given["docker-host"] {
		o.engine = swarmEngine
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("top takes no argument %q, only flags: see top --help", flags.Arg(0))
	case given["docker-host"] && given["state-dir"]:
		return o, errors.New("a cluster is in a state directory, or on a Docker Swarm: give --state-dir or --docker-host, not both")
	case o.interval < shortestInterval:
		return o, fmt.Errorf("--interval %s is too short: hosts are measured every second, so that %s or more is allowed", o.interval, shortestInterval)
	}
	if o.stateDir == "" {
		return o, nil
	}
	var err error
	o.stateDir, err = filepath.Abs(o.stateDir)
	return o, err
}
