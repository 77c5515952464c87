package overview

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// Sweeps are a cluster's sweeps as read.
type Sweeps struct {
	// Found are the sweeps with their runs, by name.
	Found map[string]reconcile.Sweep
	// Waits says, by sweep, why none of its runs starts.
	Waits map[string]string
}

// ReadSweeps reads the sweeps of a cluster.
func ReadSweeps(ctx context.Context, e engine.Engine) (s Sweeps, err error) {
	reconciler := reconcile.Reconciler{Engine: e}
	if s.Found, err = reconciler.AllSweeps(ctx); err != nil || len(s.Found) == 0 {
		return s, err
	}
	s.Waits, err = reconciler.SweepOutlook(ctx)
	return s, err
}

// Sweep is a sweep in words. What does not apply or is unknown is "".
type Sweep struct {
	Name, By string
	Summary  sweep.Summary
	// Left is an estimate of the remaining time.
	Left string
	// Waits says why no run starts, and Parallelism how many run in parallel and why.
	Waits, Parallelism string
	// Valued reports whether runs have a value to compare them by.
	Valued bool
	// Runs are in the order of [sweep.Order].
	Runs []Run
}

// Run is a run of a sweep in words. What is unknown is "".
type Run struct {
	Key      string
	State    domain.RunState
	Attempts int
	// Value compares the run to others. Place is its host, or its GPUs if it has some.
	Value, Place string
	// Took is how long the run took, or has been running for.
	Took string
	// Reason says why it waits or did not succeed.
	Reason string
}

// Sweep describes one of the sweeps.
func (r Reading) Sweep(s Sweeps, name string) Sweep {
	found := s.Found[name]
	shown := Sweep{
		Name: name, By: found.Document.By, Summary: sweep.Summarise(found.Document, found.Spec, found.Runs),
		Parallelism: sweep.ParallelismReason(found.Document, found.Parallelism), Valued: found.Spec.Objective != nil,
	}
	if !shown.Summary.Ended() {
		shown.Waits = s.Waits[name]
	}
	if left, known := shown.Summary.Left(); known {
		shown.Left = "about " + left.Round(time.Second).String() + " left"
	}
	current := make(map[string]domain.Run, len(found.Spec.Runs))
	for key := range found.Spec.Runs {
		current[key] = sweep.Now(found.Document, found.Spec.Run(key), found.Runs[key])
	}
	for _, key := range sweep.Order(found.Spec, current) {
		run := r.run(key, current[key])
		run.Reason = sweep.Reason(found.Spec.Retry, current[key], shown.Waits, r.At)
		shown.Runs = append(shown.Runs, run)
	}
	return shown
}

func (r Reading) run(key string, of domain.Run) Run {
	shown := Run{Key: key, State: of.State, Attempts: of.Attempts}
	if of.Value != nil {
		shown.Value = strconv.FormatFloat(*of.Value, 'g', -1, 64)
	}
	if of.Assignment != nil {
		shown.Place = of.Assignment.Host
		var gpus []string
		for _, uuid := range of.Assignment.GPUs.UUIDs() {
			gpus = append(gpus, r.GPUName(uuid))
		}
		if len(gpus) > 0 {
			shown.Place = strings.Join(gpus, ", ")
		}
	}
	if of.StartedAt != nil {
		end := r.At
		if of.FinishedAt != nil {
			end = *of.FinishedAt
		}
		shown.Took = end.Sub(*of.StartedAt).Round(time.Second).String()
	}
	return shown
}
