package sweep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// The data source shows each run in its current state, and ranks the successful ones.
func TestDataOfSweep(t *testing.T) {
	began := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	ended := began.Add(time.Minute)
	spec := domain.Sweep{
		Name: "lr", Runs: map[string]map[string]string{
			"a": {}, "b": {}, "bad": {}, "changed": {"LR": "2"}, "new": {}, "on": {},
		},
		Objective: &domain.Objective{Pattern: "loss=(.*)", Goal: domain.GoalMinimise},
	}
	one := func(state domain.RunState, env map[string]string, value float64) domain.Run {
		return domain.Run{
			State: state, Revision: 1, Seal: sweep.Seal(domain.RunSpec{Env: env}), Attempts: 1, StartedAt: &began,
			FinishedAt: &ended, ExitCode: new(0), Value: &value,
			Assignment:    &domain.Assignment{Host: "gpu1", GPUs: domain.NewDeviceSet("GPU-1", "GPU-2")},
			PeakMemoryMiB: new(int64(70)),
		}
	}
	bad := one(domain.RunFailed, map[string]string{}, 0.01)
	bad.Failures, bad.Reason = 1, "exit code 1"
	found := reconcile.Sweep{Document: domain.SweepDocument{
		Spec: spec, MinRun: 1,
	}, Spec: spec, Runs: map[string]domain.Run{
		"a": one(domain.RunSucceeded, map[string]string{}, 0.5),
		"b": one(domain.RunSucceeded, map[string]string{}, 0.25), "bad": bad,
		"changed": one(domain.RunSucceeded, map[string]string{"LR": "1"}, 0.1),
		"on": {
			State: domain.RunRunning, Revision: 1, Seal: sweep.Seal(domain.RunSpec{}), Attempts: 1, StartedAt: &began,
			Assignment: &domain.Assignment{Host: "gpu1"}, Results: &domain.RunResults{Path: "/results"},
		},
	}}
	var got dataModel
	got.summarise(sweep.Summarise(found.Document, found.Spec, found.Runs))
	got.setRuns(found, "there is no room", func(sweep, key string, run domain.Run) string {
		if run.Results == nil {
			return ""
		}
		return sweep + "/" + key + run.Results.Path
	})

	ran := func(key, state string, value float64) runDataModel {
		return runDataModel{
			State: state, Member: "lr-" + key + "-0", Attempts: 1, Host: new("gpu1"), GPUs: []string{"GPU-1", "GPU-2"},
			ExitCode:  new(int64(0)),
			StartedAt: resourcekit.Moment(&began), FinishedAt: resourcekit.Moment(&ended),
			PeakMemoryMiB: new(int64(70)), Value: types.Float64Value(value),
		}
	}
	waits := func(key string) runDataModel {
		return runDataModel{
			State: "queued", Reason: new("there is no room"), Member: "lr-" + key + "-0", GPUs: []string{},
			StartedAt: timetypes.NewRFC3339Null(), FinishedAt: timetypes.NewRFC3339Null(), Value: types.Float64Null(),
		}
	}
	failed := ran("bad", "failed", 0.01)
	failed.Failures, failed.Reason = 1, new("exit code 1")
	want := dataModel{
		Total: types.Int64Value(6), Ended: types.BoolValue(false), TimeLeft: new("2m30s"), Best: new("b"),
		Ranking: []string{"b", "a"},
		Counts: map[string]int64{
			"queued": 2, "running": 1, "paused": 0, "succeeded": 2, "failed": 1, "out_of_memory": 0, "cancelled": 0,
		},
		Runs: map[string]runDataModel{
			"a": ran("a", "succeeded", 0.5), "b": ran("b", "succeeded", 0.25), "bad": failed,
			"changed": waits("changed"), "new": waits("new"),
			"on": {
				State: "running", Member: "lr-on-0", Attempts: 1, Host: new("gpu1"), GPUs: []string{},
				StartedAt:  resourcekit.Moment(&began),
				FinishedAt: timetypes.NewRFC3339Null(), Value: types.Float64Null(), Results: new("lr/on/results"),
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The data source shows how many parallel runs finish the most, if runs report progress.
func TestParallelismOfSweep(t *testing.T) {
	doc := domain.SweepDocument{
		ID: "id", MinRun: 1, Spec: domain.Sweep{Name: "lr", GPUs: &domain.GPURequest{Pool: "p"}},
	}
	found := reconcile.Sweep{Document: doc, Spec: doc.Spec}
	if got := parallelismOf(found); got != nil {
		t.Errorf("without progress it is %+v", got)
	}
	found.Document.Spec.Progress = &domain.SweepProgress{Pattern: "step"}
	found.Spec = found.Document.Spec
	first := sweep.Parallelism(found.Document, domain.SweepParallelism{})
	measured, unknown := first, first
	measured.Level, measured.Best, measured.Over, measured.Settled, measured.Throughput = 8, 8, 9, true,
		map[int]float64{
			8: 22.5, 9: 22.25,
		}
	unknown.Unknown = "nothing was written"
	for name, test := range map[string]struct {
		stored domain.SweepParallelism
		want   parallelismModel
	}{
		"nothing stored": {domain.SweepParallelism{}, parallelismModel{
			Level: new(int64(1)), Throughput: map[string]types.Float64{},
			Reason: "1 at a time on a GPU until its progress is measured",
		}},
		"settled": {measured, parallelismModel{
			Level: new(int64(8)), Settled: true,
			Throughput: map[string]types.Float64{"8": types.Float64Value(22.5), "9": types.Float64Value(22.25)},
			Reason:     "8 at a time on a GPU is best: 8 make 22.5 steps a second, and 9 make 22.25",
		}},
		"not to be measured": {unknown, parallelismModel{
			Throughput: map[string]types.Float64{}, Reason: "as many run as there is room for: nothing was written",
		}},
	} {
		found.Parallelism = test.stored
		if diff := cmp.Diff(&test.want, parallelismOf(found)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
