//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// A sweep of acceptedRuns runs is applied, and one of shortRuns is run to its end, shortRunsAtOnce at a time.
	acceptedRuns               = 50
	shortRuns, shortRunsAtOnce = 1000, 16
	// acceptedBar limits the apply's time, rateBar is the minimum number of runs that end per second, and keeperBar
	// limits the controller's share of a core.
	acceptedBar = 2 * time.Second
	rateBar     = 20
	keeperBar   = 0.15
	// sweepPlanBar is the factor by which the plan of many runs may take longer than that of one.
	sweepPlanBar = 3.0
	sweepLook    = 100 * time.Millisecond
	sweepLongest = 5 * time.Minute
)

// plannedRuns are the numbers of runs for which a plan without changes is measured.
var plannedRuns = []int{1, 1000, 3000, 10_000}

// sweeps measures applies and plans of sweeps, and the rate of short runs.
func (b *bench) sweeps(ctx context.Context) (_ []fmt.Stringer, err error) {
	w, err := b.workspace(ctx, "sweeps", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if _, err := w.apply(ctx); err != nil {
		return nil, err
	}
	e, err := process.Open(domain.ClusterRef{Name: w.name}, engine.Settings{StateDir: w.stateDir().Root},
		process.Program{File: b.provider, Version: "dev"})
	if err != nil {
		return nil, err
	}
	accepted, err := w.acceptSweeps(ctx)
	if err != nil {
		return nil, err
	}
	rate, share, err := w.runSweep(ctx, reconcile.Reconciler{Engine: e})
	if err != nil {
		return nil, err
	}
	plans, err := w.planSweeps(ctx)
	if err != nil {
		return nil, err
	}

	t := &table{head: []string{"sweep", "measured"}}
	t.add(fmt.Sprintf("apply of %d runs, accepted", acceptedRuns), accepted.seconds())
	t.add(fmt.Sprintf("%s runs of true, %d at a time", count(shortRuns), shortRunsAtOnce),
		fmt.Sprintf("%.0f a second", rate))
	t.add("the controller meanwhile", fmt.Sprintf("%.1f %% of a core", 100*share))
	p := &table{head: []string{"runs", "no-change plan", "× one"}}
	for i, n := range plannedRuns {
		p.add(count(n), plans[i].seconds(), fmt.Sprintf("%.2f ×", plans[i].ratio(plans[0])))
	}
	most := plans[len(plans)-1].ratio(plans[0])
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("Bars: accepted within %s: %s; %d a second: %s; under %.0f %% of a core: %s.", acceptedBar,
			verdict(accepted.median() < acceptedBar),
			rateBar, verdict(rate >= rateBar), 100*keeperBar,
			verdict(share < keeperBar))),
		p,
		note(fmt.Sprintf("Bar: %s runs within %.0f × of one: %s.", count(plannedRuns[len(plannedRuns)-1]), sweepPlanBar,
			verdict(most <= sweepPlanBar))),
	}, nil
}

// configure writes a sweep of this many runs into the workspace. Beyond a thousand, they are in whole thousands, since
// range() in Terraform is limited to little more.
func (w *workspace) configure(runs, atOnce int, command string) error {
	return os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(configuration(w.name, 0, false)+fmt.Sprintf(`
resource "trainyard_sweep" "runs" {
  cluster      = trainyard_cluster.bench
  name         = "runs"
  command      = %s
  max_parallel = %d
  runs         = { for p in setproduct(range(%d), range(%d)) : "run-${p[0]}-${p[1]}" => { SEED = p[0], RATE = p[1] } }
}
`, command, atOnce, (runs+999)/1000, min(runs, 1000))), 0o600)
}

// acceptSweeps measures applies of a new sweep, which don't wait for its runs.
func (w *workspace) acceptSweeps(ctx context.Context) (took sample, err error) {
	for i := range w.bench.runs {
		w.bench.say("sweeps: apply %d of %d", i+1, w.bench.runs)
		if err := w.configure(acceptedRuns, shortRunsAtOnce, `["/bin/sleep", "infinity"]`); err != nil {
			return nil, err
		}
		t, err := w.apply(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, t)
		if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(configuration(w.name, 0, false)),
			0o600); err != nil {
			return nil, err
		}
		if _, err := w.apply(ctx); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// runSweep measures how many short runs end per second, and the controller's share of a core for that.
func (w *workspace) runSweep(ctx context.Context, r reconcile.Reconciler) (rate, share float64, err error) {
	w.bench.say("sweeps: running %s runs", count(shortRuns))
	c, err := crewOf(w.stateDir())
	if err != nil {
		return 0, 0, err
	}
	if err := w.configure(shortRuns, shortRunsAtOnce, `["/bin/true"]`); err != nil {
		return 0, 0, err
	}
	before, err := cpuTime(c.controller)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if _, err := w.apply(ctx); err != nil {
		return 0, 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, sweepLongest)
	defer cancel()
	for ended := 0; ended < shortRuns; {
		if err := pause(bounded, sweepLook); err != nil {
			return 0, 0, fmt.Errorf("%d of %d runs have ended: %w", ended, shortRuns, err)
		}
		found, err := r.SweepRuns(ctx, "runs")
		if err != nil {
			return 0, 0, err
		}
		ended = 0
		for _, run := range found.Runs {
			if run.State.Ended() {
				ended++
			}
		}
	}
	elapsed := time.Since(begin)
	after, err := cpuTime(c.controller)
	return float64(shortRuns) / elapsed.Seconds(), (after - before).Seconds() / elapsed.Seconds(), err
}

// planSweeps measures plans of sweeps without changes.
func (w *workspace) planSweeps(ctx context.Context) ([]sample, error) {
	plans := make([]sample, len(plannedRuns))
	for i, n := range plannedRuns {
		w.bench.say("sweeps: planning %s runs", count(n))
		if err := w.configure(n, 1, `["/bin/sleep", "infinity"]`); err != nil {
			return nil, err
		}
		if _, err := w.apply(ctx); err != nil {
			return nil, err
		}
		for range w.bench.runs {
			took, err := w.plan(ctx)
			if err != nil {
				return nil, err
			}
			plans[i] = append(plans[i], took)
		}
	}
	return plans, nil
}
