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

const usage = `Removes a host that is gone for good from a cluster on bare hosts. Its members are placed elsewhere.

  terraform-provider-trainyard forget --engine systemd --endpoint ssh://ops@gpu1 [--cluster NAME] --host gpu3

`

// Run makes the cluster forget the host that the arguments name, and prints that.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	var cluster command.Cluster
	flags := flag.NewFlagSet("forget", flag.ContinueOnError)
	cluster.AddFlags(flags, engines)
	host := flags.String("host", "", "`name` of the host to forget")
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
	_, err = fmt.Fprintln(out,
		printable.Text(fmt.Sprintf("Host %s was removed from cluster %s; its members are placed elsewhere. "+
			"Remove it from hosts in the configuration, and apply.\nFiles of the cluster stay on its disk: "+
			"if it comes "+
			"back, add it to hosts again, and then remove it.", *host, name)))
	return err
}
