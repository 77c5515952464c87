package sweepctl

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// resultsCommand is the command that fetches what runs left.
const resultsCommand = "results"

// results writes what the runs of a target left to a file, or to the standard output.
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
	if o.output == "-" {
		if file, is := out.(*os.File); is && term.IsTerminal(int(file.Fd())) {
			return errors.New("an archive is not for a terminal: write it to a file by --output FILE, or into a pipe")
		}
		_, _, err := archive(ctx, r, found, keys, out)
		return err
	}
	name := cmp.Or(o.output, strings.TrimSuffix(t.sweep+"-"+t.run, "-")+".tar")
	// What is there already is not written over before all is read.
	partial, err := os.CreateTemp(filepath.Dir(name), ".results-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(partial.Name()) }()
	with, without, err := archive(ctx, r, found, keys, partial)
	if err := errors.Join(err, partial.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial.Name(), name); err != nil {
		return err
	}
	told := fmt.Sprintf("%s: results of %d runs\n", name, with)
	if len(without) > 0 {
		told += fmt.Sprintf("without results: %s\n", strings.Join(without, ", "))
	}
	_, err = io.WriteString(out, printable.Text(told))
	return err
}

// archive writes what runs left to an archive. It returns how many had left something, and the keys of the others; that
// none had is an error.
func archive(ctx context.Context, r reconcile.Reconciler, found reconcile.Sweep, keys []string, to io.Writer) (with int, without []string, err error) {
	if found.Spec.Results == nil {
		return 0, nil, fmt.Errorf("sweep %q keeps no results: declare results, such as { path = \"results\" }", found.Spec.Name)
	}
	w := tar.NewWriter(to)
	for _, key := range keys {
		err := r.ArchiveResults(ctx, found, key, w)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			without = append(without, key)
		case err != nil:
			return with, without, err
		default:
			with++
		}
	}
	if with == 0 {
		return 0, without, fmt.Errorf("there are no results of sweep %q yet, or no longer: %s", found.Spec.Name, strings.Join(without, ", "))
	}
	return with, without, w.Close()
}
