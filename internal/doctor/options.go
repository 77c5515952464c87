package doctor

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
)

const usage = `Examines hosts, and says what they lack for an engine, with the command that mends it. Nothing is changed on them.

  terraform-provider-trainyard doctor [--engine ENGINE] [--json] ssh://ops@gpu1 ssh://ops@gpu2 ...
  terraform-provider-trainyard doctor

Without an address, this machine is examined. A problem is what an engine can't do without, a warning what some uses of
it need. The exit code is 0 without problems, 1 with some, and 2 where a host could not be examined.

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
	engine := flags.String("engine", "", "`name` of the engine that hosts are for: "+strings.Join(Engines, " or ")+"; both where this is left out")
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
			return o, fmt.Errorf("--engine %q: %s is allowed", *engine, strings.Join(Engines, " or "))
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
