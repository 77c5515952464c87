//go:build linux

package systems_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// The module trains on bare hosts as on this machine. They share no storage for checkpoints, so none loses its power.
func TestSystemPSWorkerBareHosts(t *testing.T) {
	trainOn(t, func() *site { return onHosts(t, newEnvironment(t, "tensorflow"), 2) }, "")
}

// The module trains on a Swarm as on this machine, with its own program in an image that doesn't contain it. A node
// loses its power in the middle, and its members move. Checkpoints are in a folder that the nodes share.
func TestSystemPSWorkerSwarm(t *testing.T) {
	trainOn(t, func() *site { return onSwarm(t, newEnvironment(t, "tensorflow"), 2) }, t.TempDir())
}

// trainOn trains with two parameter servers and two workers on several machines. If these share a folder of this
// machine, they have checkpoints there, and the training goes on from one after a machine has lost its power.
func trainOn(t *testing.T, start func() *site, shared string) {
	t.Helper()
	const steps = 3000 // many more than are done before the machine loses its power
	logs, mounts := "null", []string(nil)
	if shared != "" {
		logs = `"/srv/mnist"`
		mounts = append(mounts, fmt.Sprintf("{ source = %q, target = %s }", shared, logs))
	}
	w := newTensorFlow(t)
	s := start()
	configured(w, s.cluster, fmt.Sprintf(`
module "mnist" {
  source      = "./modules/ps-worker"
  cluster     = trainyard_cluster.lab
  name        = "mnist"
  train_steps = %d
  log_dir     = %s
  env         = { SAVE_EVERY = "0.5", STALL_TIMEOUT = "20" }
  wait_for    = "completed"
  timeouts    = { create = "%s" }
  ps          = { placement = { strategy = "spread" } }
  worker      = { placement = { strategy = "spread" } }
%s}
`, steps, logs, patience.Limit, s.members(mounts...)), watched("mnist"), s.withSecret(t, w))
	w.Must("plan", "-out="+savedPlan)
	begin := time.Now()
	finish := w.Start("apply", savedPlan)
	members := []string{"mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1"}
	s.awaitOnAll(t, members...)
	saved := 0
	if shared != "" {
		saved = awaitCheckpoint(t, shared, 1)
		lost := s.cutPower(t, 1, members...)
		if last := checkpointIn(t, shared); last >= steps {
			t.Fatalf("%s has lost its power after the training, at step %d, not in the middle", s.hosts[1], last)
		}
		s.restorePower(t, 1, lost)
	}
	finish()
	w.Must("apply", "-refresh-only", "-auto-approve") // members may have moved during the apply
	expectTrained(w, steps, time.Since(begin))
	log, err := s.log("mnist-worker-0")
	if err != nil {
		t.Fatal(err)
	}
	entries, last := trainedOf(strings.Split(log, "\n")), 0
	slices.SortFunc(entries, func(a, b trained) int { return cmp.Compare(a.Time, b.Time) })
	for _, entry := range entries {
		if last >= saved && entry.Step < saved {
			t.Errorf("there is step %d again, before the checkpoint of step %d:\n%s", entry.Step, saved, log)
		}
		last = entry.Step
	}
	w.ExpectNoChange("after the training")
	s.expectHidden(w, members...)
	w.Must("destroy", "-auto-approve")
	s.expectNothing(t)
}
