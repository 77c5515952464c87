//go:build linux

package systems_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The module trains on bare hosts as on this machine. They share no storage for checkpoints, so none loses its power.
func TestSystemPSWorkerBareHosts(t *testing.T) {
	trainOn(t, func() *site { return onHosts(t, newEnvironment(t, "tensorflow"), 2) }, "")
}

// The module trains on a Swarm as on this machine, with its own program in an image that doesn't contain it. A node
// loses its power in the middle, and its members move. Checkpoints are in a folder that the nodes share.
func TestSystemPSWorkerSwarm(t *testing.T) {
	const logs = "/srv/mnist"
	mount := fmt.Sprintf("{ source = %q, target = %q }", t.TempDir(), logs)
	trainOn(t, func() *site { return onSwarm(t, newEnvironment(t, "tensorflow"), 2) }, logs, mount)
}

// trainOn trains with two parameter servers and two workers on several machines, with checkpoints in a folder, if there
// is one, and more mounts. The training goes on from a checkpoint after a machine has lost its power.
func trainOn(t *testing.T, start func() *site, logs string, mounts ...string) {
	t.Helper()
	const steps = 1000
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
  timeouts    = { create = "6m" }
  ps          = { placement = { strategy = "spread" } }
  worker      = { placement = { strategy = "spread" } }
%s}
`, steps, quotedOrNull(logs), s.members(mounts...)), watched("mnist"), s.withSecret(t, w))
	w.Must("plan", "-out="+savedPlan)
	begin := time.Now()
	finish := w.Start("apply", savedPlan)
	members := []string{"mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1"}
	s.awaitOnAll(t, members...)
	saved := 0
	if logs != "" {
		saved = s.awaitCheckpoint(t, "mnist-worker-0", logs)
		s.loseHost(t, 1, members...)
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

// quotedOrNull returns a string as Terraform writes it; null for an empty one.
func quotedOrNull(value string) string {
	if value == "" {
		return "null"
	}
	return strconv.Quote(value)
}

// awaitCheckpoint waits until a member sees a checkpoint after step 0 in a folder, and returns its step.
func (s *site) awaitCheckpoint(t *testing.T, member, folder string) (step int) {
	t.Helper()
	acctest.Eventually(t, "a checkpoint in "+folder, func() bool {
		files, err := s.shell(member, "ls "+folder)
		if err != nil {
			return false // there is no such folder yet
		}
		for file := range strings.FieldsSeq(files) {
			if found := checkpointFile.FindStringSubmatch(file); found != nil {
				saved, err := strconv.Atoi(found[1])
				if err != nil {
					t.Fatal(err)
				}
				step = max(step, saved)
			}
		}
		return step > 0
	})
	return step
}
