package sweepctl

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// unknown stands for unknown values.
const unknown = "–"

// list writes a line for each sweep of a cluster.
func list(ctx context.Context, r reconcile.Reconciler, out io.Writer) error {
	sweeps, err := r.AllSweeps(ctx)
	if err != nil {
		return err
	}
	if len(sweeps) == 0 {
		_, _ = fmt.Fprintln(out, "There are no sweeps.")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SWEEP\tRUNS\tLEFT\tCREATED\tBY")
	for _, name := range slices.Sorted(maps.Keys(sweeps)) {
		found := sweeps[name]
		s := sweep.Summarise(found.Document, found.Spec, found.Runs)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, s, leftOf(s),
			found.Document.Since.Local().Format(time.DateTime), printable.Line(found.Document.By))
	}
	return w.Flush()
}

// leftOf estimates how long a sweep still takes.
func leftOf(s sweep.Summary) string {
	left, known := s.Left()
	if !known {
		return unknown
	}
	return left.Round(time.Second).String()
}

// show writes a line for each run of a sweep: first those with a value, best first, then the others by key.
func show(ctx context.Context, r reconcile.Reconciler, name string, out io.Writer) error {
	found, err := read(ctx, r, name)
	if err != nil {
		return err
	}
	waits, err := r.SweepOutlook(ctx)
	if err != nil {
		return err
	}
	summary := sweep.Summarise(found.Document, found.Spec, found.Runs)
	w, now := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), time.Now()
	_, _ = fmt.Fprintln(w, "RUN\tSTATE\tVALUE\tATTEMPT\tHOST\tTOOK\tREASON")
	current := map[string]domain.Run{}
	for key := range found.Spec.Runs {
		current[key] = sweep.Now(found.Document, found.Spec.Run(key), found.Runs[key])
	}
	for _, key := range sweep.Order(found.Spec, current) {
		run := current[key]
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", key, run.State, valueOf(run), run.Attempts, placeOf(run),
			tookOf(run, now), printable.Line(sweep.Reason(found.Spec.Retry, run, waits[name], now)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%d runs: %s; left %s\n", summary.Total, summary, leftOf(summary))
	if why := sweep.ParallelismReason(found.Document, found.Parallelism); why != "" && err == nil {
		_, err = fmt.Fprintln(out, printable.Line(why))
	}
	return err
}

func valueOf(run domain.Run) string {
	if run.Value == nil {
		return unknown
	}
	return strconv.FormatFloat(*run.Value, 'g', -1, 64)
}

func placeOf(run domain.Run) string {
	if run.Assignment == nil {
		return unknown
	}
	return run.Assignment.Place()
}

func tookOf(run domain.Run, now time.Time) string {
	switch {
	case run.StartedAt == nil:
		return unknown
	case run.FinishedAt != nil:
		now = *run.FinishedAt
	}
	return now.Sub(*run.StartedAt).Round(time.Second).String()
}
