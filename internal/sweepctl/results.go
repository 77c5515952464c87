package sweepctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// resultsCommand is the command that fetches what runs left.
const resultsCommand = "results"

// results writes what the runs of a target left to a file, or to standard output.
func (o options) results(ctx context.Context, r reconcile.Reconciler, out io.Writer) (err error) {
	t := o.targets[0]
	found, err := read(ctx, r, t.sweep)
	if err != nil {
		return err
	}
	keys := found.Spec.Keys()
	if t.run != "" {
		if _, there := found.Spec.Runs[t.run]; !there {
			return fmt.Errorf("sweep %q has no run %q", t.sweep, t.run)
		}
		keys = []string{t.run}
	}
	name := cmp.Or(o.output, strings.TrimSuffix(t.sweep+"-"+t.run, "-")+".tar")
	var with int
	var without []string
	err = command.Archive(name, out, func(to io.Writer) (err error) {
		with, without, err = archive(ctx, r, found, keys, to)
		return err
	})
	if err != nil || name == "-" {
		return err
	}
	summary := fmt.Sprintf("%s: results of %d runs\n", name, with)
	if len(without) > 0 {
		summary += fmt.Sprintf("without results: %s\n", strings.Join(without, ", "))
	}
	_, err = io.WriteString(out, printable.Text(summary))
	return err
}

// archive writes what runs left to an archive. It returns how many left something, and the keys of the others; it is an
// error if none did.
func archive(
	ctx context.Context, r reconcile.Reconciler, found reconcile.Sweep, keys []string, to io.Writer,
) (with int, without []string, err error) {
	if found.Spec.Results == nil {
		return 0, nil, fmt.Errorf("sweep %q keeps no results: declare results, such as { path = \"results\" }",
			found.Spec.Name)
	}
	with, without, err = r.ArchiveSweep(ctx, found, keys, to)
	if err == nil && with == 0 {
		err = fmt.Errorf("sweep %q has no results yet, or no longer: %s", found.Spec.Name, strings.Join(without, ", "))
	}
	return with, without, err
}
