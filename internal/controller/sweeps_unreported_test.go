package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// What is yet to be reported is dropped with its run, and with the hook.
func TestUnreportedEndsAreDropped(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *domain.Sweep)
		want   []string
	}{
		"with a run":    {func(s *domain.Sweep) { delete(s.Runs, "s-3") }, []string{"s-2 cancelled 0"}},
		"with the hook": {func(s *domain.Sweep) { s.OnFinish = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			hook := newFinishes(t)
			hook.setFailing(true)
			var spec domain.Sweep
			l := newTrack(t, func(s *domain.Sweep) {
				s.OnFinish = hook.declared()
				spec = *s
			})
			s := l.sweeper(l)
			l.must(s.look(t.Context(), time.Now()))
			l.cancel(s, "s-2", "s-3")
			awaitCalled(t, s)
			test.change(&spec)
			_, err := reconcile.Reconciler{Engine: l}.PutSweep(t.Context(), spec, false)
			l.must(nil, err)
			s = l.sweeper(l) // without the pause after a failed call
			hook.setFailing(false)
			l.deliver(s)
			hook.expect(t, test.want...)
		})
	}
}

// While a hook fails, the record of runs with many GPUs and long messages still fits into an item of a Swarm, however
// often they end. The last end of each is kept.
func TestUnreportedEndsFitIntoAnItem(t *testing.T) {
	now := time.Now()
	devices := make([]string, 8)
	for i := range devices {
		devices[i] = fmt.Sprintf("GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a9%d", i)
	}
	gpus := domain.NewDeviceSet(devices...)
	run := domain.Run{
		State: domain.RunOutOfMemory, Attempts: 100, Failures: 100, OutOfMemory: 100, Batch: 100_000,
		Assignment: &domain.Assignment{Host: strings.Repeat("h", domain.MaxNameLength), Port: 20_000, GPUs: gpus},
		StartedAt:  &now, FinishedAt: &now, ExitCode: new(137), Needs: &domain.RunNeeds{},
		Results: &domain.RunResults{Path: "/" + strings.Repeat("p", 200)}, RanOut: &domain.RanOut{At: now, GPUs: gpus},
		PeakMemoryMiB: new(int64(100_000)), PeakGPUMemoryMiB: new(int64(100_000)), Value: new(0.123456789),
		Reason: strings.Repeat("x", 450),
	}
	record := sweep.OpenRecord(domain.SweepDocument{Spec: domain.Sweep{Name: "lr"}}, nil)
	for range 20 {
		now = now.Add(time.Second)
		run.Reports = withReport(run.Reports, sweep.Report(run, run.Results.Path, now))
		if last := run.Reports[len(run.Reports)-1]; !last.EndedAt.Equal(now) {
			t.Fatalf("the last end is at %s, want %s", last.EndedAt, now)
		}
	}
	for i := range 600 {
		record.Set(fmt.Sprint(strings.Repeat("k", 50), i), run)
	}
	for _, part := range record.Changed() {
		data, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		item := engine.Item{Key: engine.Key{Kind: part.Kind(), Name: part.Key()}, Data: data}
		if err := item.Check(engine.Traits{MaxItem: 1_000_000}); err != nil {
			t.Error(err)
		}
	}
}
