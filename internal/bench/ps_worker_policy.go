//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// psThreshold is the gain that another worker has to bring, as a share of the mean gain per worker so far: noise of
	// 2 % in the progress of five workers is 10 % of that.
	psThreshold = 0.25
	// psTrials is the maximum number of counts that a policy tries: each once, and the one that it returns to.
	psTrials = mostPSWorkers + 1
	// psLastSteps is how many steps are trained after the count is found.
	psLastSteps = 200
)

// psPolicy is the result of a policy.
type psPolicy struct {
	counts    []int // from the first to the final one
	took      time.Duration
	ended     bool // completion has ended the parameter servers
	unchanged bool // the plan after that was empty
}

// last returns the final count.
func (f psPolicy) last() int { return f.counts[len(f.counts)-1] }

// followPolicy lets the policy search, starting with one worker, and then lets the training complete.
func (p *psWorkerBench) followPolicy(ctx context.Context) (found psPolicy, err error) {
	settle := 2 * p.training
	attributes := fmt.Sprintf(`  env         = { SAY_EVERY = "0.5", SAVE_EVERY = "10" }
  log_dir     = %q
  autoscale   = { min = 1, max = %d, threshold = %g, settle = %q }
`, filepath.Join(p.work, "logs", fmt.Sprint(len(p.found))), mostPSWorkers, psThreshold, settle)
	f := formation{ps: 2, cpus: workerCPUs, batch: psBatch}
	w, e, err := p.train(ctx, f, attributes)
	if w != nil {
		defer func() { err = errors.Join(err, p.end(ctx, w)) }()
	}
	if err != nil {
		return found, err
	}
	begin := time.Now()
	if found.counts, err = awaitKnee(ctx, e, psTrials*(3*settle+psWorkerPatience)); err != nil {
		return found, err
	}
	found.took = time.Since(begin)

	logs, err := p.workerLogs(ctx, e, 1)
	if err != nil {
		return found, err
	}
	last := 0
	for _, one := range logs[0] {
		last = max(last, one.Step)
	}
	cluster, _ := p.cluster(w, f.hosts)
	attributes += fmt.Sprintf("  train_steps = %d\n", last+psLastSteps)
	if err := p.configure(w, cluster, f, attributes); err != nil {
		return found, err
	}
	if _, err := w.apply(ctx); err != nil {
		return found, err
	}
	if found.ended, err = awaitEnd(ctx, e); err != nil {
		return found, err
	}
	_, err = w.plan(ctx)
	found.unchanged = err == nil
	return found, ctx.Err()
}

// awaitKnee waits until the policy has found its final count, and returns all counts so far.
func awaitKnee(ctx context.Context, e engine.Store, patience time.Duration) ([]int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("the policy has found no count within %s", patience))
	defer cancel()
	for {
		stored, err := engine.Contents(ctx, e, autoscale.HistoryKind)
		if err != nil {
			return nil, err
		}
		entries, err := autoscale.ReadHistory(stored, time.Now(), autoscale.Selection{Group: "mnist", Role: "worker"})
		if err != nil {
			return nil, err
		}
		counts := []int{1}
		for _, entry := range entries {
			if entry.Scaled() {
				counts = append(counts, entry.To)
			}
		}
		if n := len(entries); n > 0 && !entries[n-1].Scaled() &&
			strings.Contains(entries[n-1].Why(), "the best known count is") {
			return counts, nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// awaitEnd reports whether the training completes in time, and all its members end.
func awaitEnd(ctx context.Context, e engine.Engine) (ended bool, err error) {
	patient, cancel := context.WithTimeout(ctx, psWorkerPatience)
	defer cancel()
	for {
		group, err := reconcile.Reconciler{Engine: e}.Read(ctx, "mnist")
		if err != nil {
			return false, err
		}
		ended = group.Progress.Phase == domain.PhaseCompleted
		for _, o := range group.Observed {
			ended = ended && o.State != domain.StateRunning
		}
		if ended || pause(patient, time.Second) != nil {
			return ended, ctx.Err()
		}
	}
}

// kneeOf returns the number of members beyond which one more brings no more than the threshold, given the rates of 1,
// 2, … members, as the algorithm marginal_gain does.
func kneeOf(rates []float64, threshold float64) int {
	for n := 1; n < len(rates); n++ {
		if each := rates[n-1] / float64(n); (rates[n]-rates[n-1])/each <= threshold {
			return n
		}
	}
	return len(rates)
}
