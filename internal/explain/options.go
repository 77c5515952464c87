package explain

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// defaultEntries is how many entries are shown by default.
const defaultEntries = 10

// options are the parsed arguments.
type options struct {
	cluster command.Cluster
	// group and role are those of the policy; both are empty for all policies.
	group, role string
	// entries is the maximum number to show; 0 means all.
	entries int
	since   time.Duration
	json    bool
}

const usage = `Shows what an autoscaling policy decided, and why. The newest decision comes last.

  terraform-provider-trainyard autoscale explain [--engine ENGINE] [--endpoint ENDPOINT] [--cluster NAME] GROUP/ROLE

With --json, GROUP/ROLE may be omitted to print the decisions of all policies. To train a model for the algorithm
"learned", see terraform-provider-trainyard autoscale train --help.

`

func parse(args []string, engines engine.Registry) (options, error) {
	var o options
	if len(args) > 0 && args[0] == "explain" {
		args = args[1:]
	} else if len(args) == 0 || !slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		return o, fmt.Errorf(
			"autoscale needs the command explain or train, got %q: see terraform-provider-trainyard autoscale --help",
			args,
		)
	}
	flags := flag.NewFlagSet("autoscale explain", flag.ContinueOnError)
	o.cluster.AddFlags(flags, engines)
	flags.IntVar(&o.entries, "n", defaultEntries,
		"`number` of entries to show, the newest ones; 0 for all, which is the default with --json")
	flags.DurationVar(&o.since, "since", 0, "omit decisions older than this `time`, such as 2h")
	flags.BoolVar(&o.json, "json", false, "print entries as JSON, one per line")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	policy := ""
	for { // flags may stand before and after the policy
		if err := flags.Parse(args); err != nil {
			return o, err
		}
		if flags.NArg() == 0 {
			break
		}
		if policy != "" {
			return o, fmt.Errorf("explain takes one policy, got %q as well as %q", flags.Arg(0), policy)
		}
		policy, args = flags.Arg(0), flags.Args()[1:]
	}
	return o, o.complete(flags, policy)
}

// complete checks the parsed flags and the policy together, and fills in what depends on both.
func (o *options) complete(flags *flag.FlagSet, policy string) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.json && !given["n"] {
		o.entries = 0
	}
	o.group, o.role, _ = strings.Cut(policy, "/")
	switch {
	case policy == "" && !o.json:
		return errors.New("explain needs a policy, as GROUP/ROLE, such as mnist/worker")
	case policy != "" && (o.group == "" || o.role == "" || strings.Contains(o.role, "/")):
		return fmt.Errorf("invalid policy %q: use GROUP/ROLE, such as mnist/worker", policy)
	case o.entries < 0:
		return fmt.Errorf("-n must be 1 or more, or 0 for all, got %d", o.entries)
	case o.since < 0:
		return fmt.Errorf("--since must be positive, such as 2h, got %s", o.since)
	}
	return nil
}

// selection returns what the options select from the history.
func (o options) selection(now time.Time) autoscale.Selection {
	s := autoscale.Selection{Group: o.group, Role: o.role, Limit: o.entries}
	if o.since > 0 {
		s.Since = now.Add(-o.since)
	}
	return s
}
