// Package sweepctl is the command "sweep", which shows, pauses, resumes and cancels the runs of sweeps, and downloads
// their results.
package sweepctl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

const usage = `Shows, pauses, resumes and cancels the runs of sweeps, and downloads their results.

  terraform-provider-trainyard sweep ls [SWEEP]
  terraform-provider-trainyard sweep pause|resume|cancel SWEEP[/RUN]...
  terraform-provider-trainyard sweep results SWEEP[/RUN] [--output FILE]

Without RUN, pause, resume and cancel apply to all runs of the sweep that have not ended; resume also takes back
cancellations. If the engine can't halt members, pause leaves running ones alone. Results are a tar archive with a
folder for each run that left some.

`

// wishes are the commands that request something.
var wishes = map[string]domain.RunWish{
	"pause": domain.WishPause, "resume": domain.WishResume, "cancel": domain.WishCancel,
}

// options are the parsed arguments.
type options struct {
	command string
	cluster command.Cluster
	targets []target
	force   bool
	output  string
	timeout time.Duration
}

// target is a sweep, or one of its runs.
type target struct{ sweep, run string }

// defaultTimeout limits how long a request may take by default.
const defaultTimeout = time.Minute

// Run executes the command in the arguments.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	o, err := parse(args, engines)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	_, e, err := o.cluster.Find(ctx, engines)
	if err != nil {
		return err
	}
	if o.command == resultsCommand {
		return o.results(ctx, reconcile.Reconciler{Engine: e}, out)
	}
	var text strings.Builder
	err = o.do(ctx, reconcile.Reconciler{Engine: e}, &text)
	_, failed := io.WriteString(out, printable.Text(text.String()))
	return errors.Join(failed, err)
}

func parse(args []string, engines engine.Registry) (options, error) {
	var o options
	flags := flag.NewFlagSet("sweep", flag.ContinueOnError)
	o.cluster.AddFlags(flags, engines)
	flags.BoolVar(&o.force, "force", false, "allow changes to a sweep that another user created")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "`time` to wait for the controller to handle the request")
	flags.StringVar(&o.output, "output", "",
		"`file` to write results to, or - for standard output; defaults to SWEEP.tar or SWEEP-RUN.tar")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	words, err := command.Words(flags, args)
	if err != nil {
		return o, err
	}
	if len(words) == 0 {
		return o, errors.New(
			"sweep needs a command, ls, pause, resume, cancel or results: see terraform-provider-trainyard " +
				"sweep --help",
		)
	}
	o.command = words[0]
	for _, word := range words[1:] {
		name, run, named := strings.Cut(word, "/")
		if named && run == "" {
			return o, fmt.Errorf("%q names no run: use SWEEP or SWEEP/RUN", word)
		}
		o.targets = append(o.targets, target{name, run})
	}
	_, asks := wishes[o.command]
	switch {
	case !asks && o.command != "ls" && o.command != resultsCommand:
		return o, fmt.Errorf("unknown command %q of sweep; use ls, pause, resume, cancel or results", o.command)
	case o.command == resultsCommand && len(o.targets) != 1:
		return o, errors.New("results needs one sweep, or a run of one as SWEEP/RUN, such as lr/seed-1")
	case o.command == resultsCommand:
	case asks && len(o.targets) == 0:
		return o, fmt.Errorf("%s needs a sweep, or a run of one as SWEEP/RUN, such as lr/seed-1", o.command)
	case !asks && (len(o.targets) > 1 || len(o.targets) == 1 && o.targets[0].run != ""):
		return o, errors.New("ls takes one sweep, or none for a list of them")
	}
	switch {
	case o.timeout <= 0:
		return o, fmt.Errorf("--timeout must be positive, got %s", o.timeout)
	case o.output != "" && o.command != resultsCommand:
		return o, fmt.Errorf("--output is only for results; %s writes to standard output", o.command)
	}
	return o, nil
}

// do executes the command in the options.
func (o options) do(ctx context.Context, r reconcile.Reconciler, out io.Writer) error {
	switch {
	case o.command == "ls" && len(o.targets) == 0:
		return list(ctx, r, out)
	case o.command == "ls":
		return show(ctx, r, o.targets[0].sweep, out)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for _, t := range o.targets {
		if err := o.ask(ctx, r, t, out); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request for the runs of a target, and reports the result.
func (o options) ask(ctx context.Context, r reconcile.Reconciler, t target, out io.Writer) error {
	found, err := read(ctx, r, t.sweep)
	if err != nil {
		return err
	}
	keys := []string{t.run}
	if t.run == "" {
		keys = concerned(found, wishes[o.command], r.Engine.Traits().Supports.Pause)
	}
	if len(keys) == 0 {
		_, _ = fmt.Fprintf(out, "sweep %s has no run to %s\n", t.sweep, o.command)
		return nil
	}
	if err := r.RequestRuns(ctx, t.sweep, keys, wishes[o.command], o.force); err != nil {
		return err
	}
	if found, err = read(ctx, r, t.sweep); err != nil {
		return err
	}
	for _, key := range keys {
		_, _ = fmt.Fprintf(out, "%s/%s  %s\n", t.sweep, key,
			sweep.Now(found.Document, found.Spec.Run(key), found.Runs[key]).State)
	}
	return nil
}

// concerned returns the runs of a sweep that a request can apply to. halts is whether the engine can halt members.
func concerned(found reconcile.Sweep, wish domain.RunWish, halts bool) []string {
	return slices.DeleteFunc(found.Spec.Keys(), func(key string) bool {
		state := sweep.Now(found.Document, found.Spec.Run(key), found.Runs[key]).State
		if wish == domain.WishResume {
			return state != domain.RunPaused && state != domain.RunCancelled
		}
		return state.Ended() ||
			wish == domain.WishPause && (state == domain.RunPaused || state == domain.RunRunning && !halts)
	})
}

// read returns a sweep, or an error that lists the existing ones.
func read(ctx context.Context, r reconcile.Reconciler, name string) (reconcile.Sweep, error) {
	found, err := r.SweepRuns(ctx, name)
	if !errors.Is(err, engine.ErrNotFound) {
		return found, err
	}
	documents, listed := engine.List[domain.SweepDocument](ctx, r.Engine)
	if listed != nil {
		return found, listed
	}
	return found, fmt.Errorf("there is no sweep %q; there are %q", name, slices.Sorted(maps.Keys(documents)))
}
