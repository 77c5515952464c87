package doctor

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
)

const usage = `Checks what hosts lack for an engine, and shows the command that fixes it. Changes nothing on the hosts.

  terraform-provider-trainyard doctor [--engine ENGINE] [--json] ssh://ops@gpu1 ssh://ops@gpu2 ...
  terraform-provider-trainyard doctor

Without an address, this machine is examined. A problem is something that the engine can't do without, a warning is
something that only some uses need. The exit code is 0 without problems, 1 with problems, and 2 if a host could not be
examined.

`

// options are what the arguments say.
type options struct {
	engines []string
	targets []target
	json    bool
}

func parseOptions(args []string) (options, error) {
	o := options{engines: Engines}
	var ssh command.SSH
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	engine := flags.String("engine", "",
		"`name` of the engine that hosts are for: "+strings.Join(Engines, " or ")+"; both by default")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	ssh.AddFlags(flags)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	addresses, err := command.Words(flags, args)
	if err != nil {
		return o, err
	}
	if *engine != "" {
		if !slices.Contains(Engines, *engine) {
			return o, fmt.Errorf("unknown engine %q; use %s", *engine, strings.Join(Engines, " or "))
		}
		o.engines = []string{*engine}
	}
	for _, address := range addresses {
		t, err := remote(address, ssh.SSHCredentials)
		if err != nil {
			return o, err
		}
		o.targets = append(o.targets, t)
	}
	if len(addresses) == 0 {
		t, err := local()
		if err != nil {
			return o, err
		}
		o.targets = []target{t}
	}
	return o, nil
}
