package logs

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const usage = `Prints the logs of a group's current run: those of the members that decide its completion, such as the
chief, or of all members if none does.

  terraform-provider-trainyard logs GROUP [--follow] [--member NAME]...
  terraform show -json PLAN | terraform-provider-trainyard logs --plan - --follow [GROUP]

With --follow, prints new lines until the group has ended. The exit code is 0 if the group completed, otherwise that of
the member that failed first.

With --plan, takes cluster and group from a plan, and prints the log of the run that applying it starts; GROUP is needed
only if the plan has several. The run is awaited; once the file of --applied exists, a missing run is an error. Without
--follow, prints the names of the group and its cluster instead.

`

// options are the parsed arguments.
type options struct {
	cluster command.Cluster
	// name is the name of the group; empty for the only one of a plan.
	name    string
	members []string
	all     bool
	follow  bool
	// plan is the path of a plan as JSON, - for standard input; empty for none.
	plan string
	// applied is the path of a file that exists once the plan has been applied; empty if nothing tells.
	applied string
}

func parse(args []string, engines engine.Registry) (options, error) {
	var o options
	flags := flag.NewFlagSet("logs", flag.ContinueOnError)
	o.cluster.AddFlags(flags, engines)
	member := func(name string) error {
		o.members = append(o.members, name)
		return nil
	}
	flags.Func("member", "`name` of a member, such as mnist-worker-1; can be repeated", member)
	flags.BoolVar(&o.all, "all", false, "print the logs of all members, each line prefixed with the name of its member")
	flags.BoolVar(&o.follow, "follow", false, "continue until the group has ended, and exit with its exit code")
	flags.StringVar(&o.plan, "plan", "",
		"`file` with a plan as printed by terraform show -json, or - for standard input")
	flags.StringVar(&o.applied, "applied", "",
		"`file` that exists once the plan has been applied successfully; with --plan and --follow")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	words, err := command.Words(flags, args)
	if err != nil {
		return o, err
	}
	var chooses bool // a cluster
	flags.Visit(func(f *flag.Flag) {
		chooses = chooses || slices.Contains([]string{"engine", "endpoint", "cluster"}, f.Name)
	})
	if len(words) > 0 {
		o.name = words[0]
	}
	switch {
	case len(words) > 1:
		return o, fmt.Errorf("logs takes one group, got %q", words)
	case o.name == "" && o.plan == "":
		return o, errors.New("logs needs a group, such as mnist: see terraform-provider-trainyard logs --help")
	case o.all && len(o.members) > 0:
		return o, errors.New("--all and --member are mutually exclusive")
	case o.plan != "" && chooses:
		return o, errors.New("--plan already names the cluster: omit --engine, --endpoint and --cluster")
	case o.applied != "" && (o.plan == "" || !o.follow):
		return o, errors.New("--applied needs --plan and --follow")
	}
	for _, member := range o.members {
		if o.name != "" && !strings.HasPrefix(member, o.name+"-") {
			return o, fmt.Errorf("--member %q is not in group %q, whose members are named %[2]s-<role>-<index>", member,
				o.name)
		}
	}
	return o, nil
}
