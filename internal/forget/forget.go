// Package forget is the command "forget", which makes a cluster forget a host that is gone for good.
package forget

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

// Run makes the cluster forget the host that the arguments name, and prints that.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	var cluster command.Cluster
	flags := flag.NewFlagSet("forget", flag.ContinueOnError)
	cluster.AddFlags(flags, engines)
	host := flags.String("host", "", "`name` of the host to forget")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("forget: unknown argument %q", flags.Arg(0))
	}
	if *host == "" {
		return errors.New("forget: name the host that is gone, such as --host gpu3")
	}
	name, e, err := cluster.Find(ctx, engines)
	if err != nil {
		return err
	}
	if err := engine.Forget(ctx, e, *host); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, printable.Text(fmt.Sprintf("Host %s of cluster %s is given up: its members are placed elsewhere. "+
		"Take it out of hosts in the configuration, and apply.\nWhat it has of the cluster stays on its disk: should it come "+
		"back, put it into hosts once more, and take it out then.", *host, name)))
	return err
}
