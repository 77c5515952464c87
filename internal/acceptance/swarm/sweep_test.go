//go:build linux

package swarm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// A host crashes with runs of a sweep on it: they are queued again, which uses up no attempt, and run elsewhere. Ended
// runs leave no service, and the plan is always empty.
func TestAccSwarmSweep(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, three)
	l := newSwarmLab(t, bed, "trials")
	w := newSwarmWorkspace(l)
	done := filepath.Join(t.TempDir(), "done")
	w.configure(l.wholeBed(1), fmt.Sprintf(`
resource "trainyard_sweep" "trials" {
  cluster      = trainyard_cluster.lab
  name         = "trials"
  image        = %q
  args         = ["print:{{ .Role }} has {{ .Env.SEED }}", "until:{{ .Env.DONE }}", "results:done", "exit:0"]
  mounts       = [{ source = %[2]q, target = %[2]q }]
  env          = { DONE = %[3]q }
  runs         = { for seed in range(9) : "seed-${seed}" => { SEED = seed } }
  max_parallel = 6
  results      = { path = "${dirname(%[3]q)}/out" }
}
`, memberImage, filepath.Dir(done), done))
	w.Must("apply", "-auto-approve")

	manager, victim := bed.Nodes[0], bed.Nodes[2]
	r := l.reconcilerAt(manager)
	swept := func(what string, as func(runs map[string]domain.Run, s sweep.Summary) bool) (found reconcile.Sweep) {
		t.Helper()
		acctest.Eventually(t, what, func() bool {
			var err error
			found, err = r.SweepRuns(t.Context(), "trials")
			if reconcile.Passes(err) {
				return false
			}
			l.must(err)
			return as(found.Runs, sweep.Summarise(found.Document, found.Spec, found.Runs))
		})
		return found
	}
	on := func(runs map[string]domain.Run, host string) (n int) {
		for _, run := range runs {
			if run.Active() && run.Assignment.Host == host {
				n++
			}
		}
		return n
	}
	swept("six runs to be on, some of them where a host will die",
		func(runs map[string]domain.Run, s sweep.Summary) bool {
			return s.Counts[domain.RunRunning] == 6 && on(runs, victim.Name) > 0
		})
	acctest.Eventually(t, "their members to run", func() bool {
		observed, err := r.Engine.Observe(t.Context(), "trials")
		if reconcile.Passes(err) {
			return false
		}
		l.must(err)
		return len(observed) == 6 &&
			!slices.ContainsFunc(observed, func(o domain.Observed) bool { return o.State != domain.StateRunning })
	})
	w.ExpectNoChange("with runs on")
	l.must(victim.Crash())
	swept("six runs to be on, none of them on the dead host", func(runs map[string]domain.Run, s sweep.Summary) bool {
		return s.Counts[domain.RunRunning] == 6 && on(runs, victim.Name) == 0
	})
	l.must(os.WriteFile(done, nil, 0o600))
	end := swept("all runs to succeed", func(_ map[string]domain.Run, s sweep.Summary) bool { return s.Ended() })
	for key, run := range end.Runs {
		if run.State != domain.RunSucceeded || run.Failures != 0 {
			t.Errorf("%s is %+v", key, run)
		}
	}
	acctest.Eventually(t, "the services of the runs to be gone", func() bool {
		observed, err := r.Engine.Observe(t.Context(), "trials")
		if reconcile.Passes(err) {
			return false
		}
		l.must(err)
		return len(observed) == 0
	})
	w.ExpectNoChange("with all runs ended, and a node down")

	// Their results are in the folder that the hosts share: whether the crashed host has any is unknown.
	shared := filepath.Join(filepath.Dir(done), "out", "trials")
	var there []string
	for key, run := range end.Runs {
		text, err := os.ReadFile(filepath.Join(shared, key, "lines"))
		l.must(err)
		if !strings.HasPrefix(string(text), "done\n") {
			t.Errorf("%s has left %q", key, text)
		}
		if run.Assignment.Host != victim.Name {
			there = append(there, key)
		}
	}
	if place := r.ResultsPlace("trials", "seed-0", end.Runs["seed-0"]); place != filepath.Join(shared, "seed-0") {
		t.Errorf("its results are said to be at %s", place)
	}
	l.must(os.RemoveAll(shared))
	lost, err := r.LostResults(t.Context(), end)
	l.must(err)
	if slices.Sort(there); !slices.Equal(lost, there) {
		t.Errorf("with all results gone, those of %q are missed, want %q", lost, there)
	}
	acceptance.ExpectSaid(t, w.Must("plan"), `Sweep "trials": results are gone`, "rerun")
	w.Must("destroy", "-auto-approve", "-target=trainyard_sweep.trials")
}
