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

// The data source tells of each run as it counts now, and ranks those that succeeded.
func TestDataOfSweep(t *testing.T) {
	began := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	ended := began.Add(time.Minute)
	spec := domain.Sweep{
		Name: "lr", Runs: map[string]map[string]string{"a": {}, "b": {}, "bad": {}, "changed": {"LR": "2"}, "new": {}, "on": {}},
		Objective: &domain.Objective{Pattern: "loss=(.*)", Goal: domain.GoalMinimise},
	}
	one := func(state domain.RunState, env map[string]string, value float64) domain.Run {
		return domain.Run{
			State: state, Revision: 1, Seal: sweep.Seal(domain.RunSpec{Env: env}), Attempts: 1, StartedAt: &began, FinishedAt: &ended, ExitCode: new(0), Value: &value,
			Assignment: &domain.Assignment{Host: "gpu1", GPUs: domain.NewDeviceSet("GPU-1", "GPU-2")}, PeakMemoryMiB: new(int64(70)),
		}
	}
	bad := one(domain.RunFailed, map[string]string{}, 0.01)
	bad.Failures, bad.Reason = 1, "exit code 1"
	found := reconcile.Sweep{Document: domain.SweepDocument{Spec: spec, MinRun: 1}, Spec: spec, Runs: map[string]domain.Run{
		"a": one(domain.RunSucceeded, map[string]string{}, 0.5), "b": one(domain.RunSucceeded, map[string]string{}, 0.25), "bad": bad,
		"changed": one(domain.RunSucceeded, map[string]string{"LR": "1"}, 0.1),
		"on":      {State: domain.RunRunning, Revision: 1, Seal: sweep.Seal(domain.RunSpec{}), Attempts: 1, StartedAt: &began, Assignment: &domain.Assignment{Host: "gpu1"}, Results: &domain.RunResults{Path: "/results"}},
	}}
	var got dataModel
	got.summarise(sweep.Summarise(found.Document, found.Spec, found.Runs))
	got.tell(found, "there is no room", func(sweep, key string, run domain.Run) string {
		if run.Results == nil {
			return ""
		}
		return sweep + "/" + key + run.Results.Path
	})

	ran := func(key, state string, value float64) runDataModel {
		return runDataModel{
			State: state, Member: "lr-" + key + "-0", Attempts: 1, Host: new("gpu1"), GPUs: []string{"GPU-1", "GPU-2"}, ExitCode: new(int64(0)),
			StartedAt: resourcekit.Moment(&began), FinishedAt: resourcekit.Moment(&ended), PeakMemoryMiB: new(int64(70)), Value: types.Float64Value(value),
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
		Total: types.Int64Value(6), Ended: types.BoolValue(false), TimeLeft: new("2m30s"), Best: new("b"), Ranking: []string{"b", "a"},
		Counts: map[string]int64{"queued": 2, "running": 1, "paused": 0, "succeeded": 2, "failed": 1, "out_of_memory": 0, "cancelled": 0},
		Runs: map[string]runDataModel{
			"a": ran("a", "succeeded", 0.5), "b": ran("b", "succeeded", 0.25), "bad": failed, "changed": waits("changed"), "new": waits("new"),
			"on": {
				State: "running", Member: "lr-on-0", Attempts: 1, Host: new("gpu1"), GPUs: []string{}, StartedAt: resourcekit.Moment(&began),
				FinishedAt: timetypes.NewRFC3339Null(), Value: types.Float64Null(), Results: new("lr/on/results"),
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
