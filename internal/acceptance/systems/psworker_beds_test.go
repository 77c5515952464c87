//go:build linux

package systems_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// The module trains on bare hosts as on this machine. They share no storage for checkpoints, so none loses its power,
// but a worker dies in the middle, which costs the others no step.
func TestSystemPSWorkerBareHosts(t *testing.T) {
	trainOn(t, "tensorflow_v1", func() *site { return onHosts(t, newEnvironment(t, "tensorflow"), 2) }, "")
}

// The module trains on a Swarm as on this machine, with its own program in an image that doesn't contain it. A node
// loses its power in the middle, and its members move. Checkpoints are in a folder that the nodes share.
func TestSystemPSWorkerSwarm(t *testing.T) {
	trainOn(t, "tensorflow_v1", func() *site { return onSwarm(t, newEnvironment(t, "tensorflow"), 2) }, t.TempDir())
}

// So does the program of TensorFlow 2, with a coordinator.
func TestSystemPSWorkerCoordinatorSwarm(t *testing.T) {
	trainOn(t, "tensorflow", func() *site { return onSwarm(t, newEnvironment(t, "tensorflow"), 2) }, t.TempDir())
}

// trainOn trains with two parameter servers and two workers on several machines. If these share a folder of this
// machine, they have checkpoints there, and the training goes on from one after a machine has lost its power. If not,
// there are no checkpoints, and the training goes on from where it is after the death of worker 1.
func trainOn(t *testing.T, framework string, start func() *site, shared string) {
	t.Helper()
	members := []string{"mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1"}
	chief := members[2]
	if framework == "tensorflow" {
		chief = "mnist-chief-0"
		members = append(members, chief)
	}
	const steps = 3000 // many more than are done before the machine loses its power, or the worker dies
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
  framework   = %q
  train_steps = %d
  log_dir     = %s
  env         = { SAVE_EVERY = "0.5", STALL_TIMEOUT = "20" }
  wait_for    = "completed"
  timeouts    = { create = "%s" }
  ps          = { placement = { strategy = "spread" } }
  worker      = { placement = { strategy = "spread" } }
%s}
`, framework, steps, logs, patience.Limit, s.members(mounts...)), watched("mnist"), s.withSecret(t, w))
	w.Must("plan", "-out="+savedPlan)
	begin := time.Now()
	finish := w.Start("apply", savedPlan)
	s.awaitOnAll(t, members...)
	var saved int
	if shared != "" {
		saved = awaitCheckpoint(t, shared, 1)
		lost := s.cutPower(t, 1, members...)
		if last := checkpointIn(t, shared); last >= steps {
			t.Fatalf("%s has lost its power after the training, at step %d, not in the middle", s.hosts[1], last)
		}
		s.restorePower(t, 1, lost)
	} else {
		saved = s.loseWorker(t, steps)
	}
	finish()
	w.Must("apply", "-refresh-only", "-auto-approve") // members may have moved during the apply
	expectTrained(w, steps, time.Since(begin))
	log, err := s.log(chief)
	if err != nil {
		t.Fatal(err)
	}
	entries, last := trainedOf(strings.Split(log, "\n")), 0
	slices.SortFunc(entries, func(a, b trained) int { return cmp.Compare(a.Time, b.Time) })
	for _, entry := range entries {
		if last >= saved && entry.Step < saved {
			t.Errorf("there is step %d again, before step %d, which can't be lost:\n%s", entry.Step, saved, log)
		}
		last = entry.Step
	}
	w.ExpectNoChange("after the training")
	s.expectHidden(w, members...)
	w.Must("destroy", "-auto-approve")
	s.expectNothing(t)
}

// loseWorker kills worker 1 of a training of this many steps in the middle, and returns the last step until then.
func (s *site) loseWorker(t *testing.T, steps int) (last int) {
	t.Helper()
	stepOf := func(member string) (step int) {
		log, err := s.log(member)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range trainedOf(strings.Split(log, "\n")) {
			step = max(step, entry.Step)
		}
		return step
	}
	acctest.Eventually(t, "both workers to train", func() bool {
		return stepOf("mnist-worker-0") > 0 && stepOf("mnist-worker-1") > 0
	})
	if err := s.kill("mnist-worker-1", "KILL"); err != nil {
		t.Fatal(err)
	}
	if last = stepOf("mnist-worker-0"); last >= steps {
		t.Fatalf("worker 1 has died after the training, at step %d, not in the middle", last)
	}
	t.Logf("worker 1 has died at step %d", last)
	return last
}
