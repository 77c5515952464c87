package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// collected is the archive of a sweep's results, which a destroy writes to a folder of the machine that Terraform runs
// on. The zero value is none.
type collected struct {
	sweep, file string
	runs        int
	without     []string
}

// newCollected returns the archive of a sweep. Its name includes the time, so that it replaces no other one.
func newCollected(state Model, now time.Time) collected {
	name := state.Name.ValueString()
	file := fmt.Sprintf("%s-%s-%s.tar", state.Cluster.Name.ValueString(), name,
		now.UTC().Format("20060102T150405.000Z"))
	return collected{sweep: name, file: filepath.Join(*state.Results.CollectTo, file)}
}

// errNothing prevents writing an archive without results.
var errNothing = errors.New("the runs left no results")

// by returns the function that writes the archive; nil if there should be none.
func (c *collected) by(reconciler reconcile.Reconciler) reconcile.Collect {
	if c.file == "" {
		return nil
	}
	return func(ctx context.Context, found reconcile.Sweep) error {
		if err := os.MkdirAll(filepath.Dir(c.file), 0o750); err != nil {
			return fmt.Errorf("results.collect_to of sweep %q: %w", c.sweep, err)
		}
		var with int
		var without []string
		err := command.Archive(c.file, nil, func(to io.Writer) (err error) {
			with, without, err = reconciler.ArchiveSweep(ctx, found, keysOf(found), to)
			if err == nil && with == 0 {
				return errNothing
			}
			return err
		})
		switch {
		case err == nil:
			c.runs, c.without = with, without
		case !errors.Is(err, errNothing):
			return fmt.Errorf(
				"results of sweep %q could not be collected into %s, and stay where its runs left them: %w", c.sweep,
				c.file, err)
		}
		return nil
	}
}

// keysOf returns the keys of a sweep's runs, with those that were lost from the store but have run: their results are
// deleted, too.
func keysOf(found reconcile.Sweep) []string {
	keys := slices.AppendSeq(found.Spec.Keys(), maps.Keys(found.Runs))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// announce says where the archive is, if it was written.
func (c *collected) announce(diags *diag.Diagnostics) {
	if c.runs == 0 {
		return
	}
	detail := fmt.Sprintf("The results of %d of its %d runs are in %s.", c.runs, c.runs+len(c.without), c.file)
	if without := len(c.without); without > 0 {
		detail += fmt.Sprintf(" Without results: %d, which left none or whose host is no longer in the cluster.",
			without)
	}
	diags.AddWarning(fmt.Sprintf("Results of sweep %q collected", c.sweep), detail)
}
