// Package promote is the command "promote", which moves a cluster's store to another of its hosts.
package promote

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

const usage = `Moves the store of a cluster on bare hosts from a manager that is down to another of its hosts.

  terraform-provider-trainyard promote --engine systemd --endpoint ssh://ops@gpu2 [--cluster NAME]

The endpoint is the host that keeps the cluster's documents and runs its controller from now on.

`

// Run makes the host at the endpoint in the arguments replace a store host that is down, and prints that.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	var cluster command.Cluster
	flags := flag.NewFlagSet("promote", flag.ContinueOnError)
	cluster.AddFlags(flags, engines)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("promote: unknown argument %q", flags.Arg(0))
	}
	if cluster.Endpoint == "" {
		return fmt.Errorf("promote: name the host to move the store to, such as --endpoint ssh://ops@gpu2")
	}
	name, e, err := cluster.Find(ctx, engines)
	if err != nil {
		return err
	}
	from, to, err := engine.Promote(ctx, e)
	if err != nil {
		return err
	}
	if from == to {
		from = "whichever host had it before"
	}
	_, err = fmt.Fprintln(out, printable.Text(fmt.Sprintf("Host %s now keeps the store of cluster %s, in "+
		"place of %s.\n"+
		"Give it role = \"manager\" in the configuration, or the next apply moves the store back.", to, name, from)))
	return err
}
