//go:build linux

package systems_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// A policy adds workers to an endless training by the steps that a real TensorFlow reports, and stops. After each
// change the training resumes from a checkpoint, as it does after the deaths of the parameter server and of the chief.
// Changes by others to any part are seen and repaired.
func TestSystemPSWorkerPolicy(t *testing.T) {
	const most = 3
	w := newTensorFlow(t)
	logs := filepath.Join(t.TempDir(), "logs")
	w.Write("main.tf", inLab+fmt.Sprintf(`
module "mnist" {
  source      = "./modules/ps-worker"
  cluster     = trainyard_cluster.lab
  name        = "mnist"
  log_dir     = %q
  tensorboard = { port = 18016 }
  env         = { SAY_EVERY = "0.2", SAVE_EVERY = "1" }
  ps          = { port = 18010, replicas = 1, resources = { cpus = 0.1, limits = { cpus = 0.6 } } }
  worker      = { port = 19010, resources = { cpus = 0.1, limits = { cpus = 0.5 } } }
  autoscale   = { max = %d, threshold = 0.5, settle = "6s" }
}

output "path" { value = module.mnist.path }
`, logs, most))
	w.Must("get")
	w.Must("apply", "-auto-approve")
	l := labOf(t, w)
	t.Cleanup(func() {
		if t.Failed() {
			acceptance.Explain(t, acctest.Build(t, acctest.Provider), "mnist/worker", "--endpoint", w.StateDir)
		}
	})

	acctest.Eventually(t, "the policy to have found its count", func() bool {
		entries := acceptance.Recorded(t, l.engine)
		return len(entries) > 0 && strings.Contains(entries[len(entries)-1].Why(), "the best known count is")
	})
	var counts []int
	for _, e := range acceptance.Recorded(t, l.engine) {
		if e.Scaled() {
			counts = append(counts, e.To)
		}
	}
	found := l.read("mnist")
	if count := found.Document.Counts["worker"]; len(counts) == 0 || counts[0] != 2 || count != counts[len(counts)-1] {
		t.Errorf("there are %d workers after counts of %v, want it to begin with 2 and to stay with the last", count,
			counts)
	}
	w.ExpectNoChange("with the count of the policy")
	t.Logf("the policy went to %v workers by the steps of the training, and stays there", counts)

	for _, victim := range []string{"mnist-ps-0", "mnist-worker-0"} {
		l.expectResumed(victim, "mnist-worker-0", logs)
	}
	l.expectDriftMended(w)

	w.Must("destroy", "-auto-approve")
	w.ExpectNobody("after the destroy")
}

// expectDriftMended changes each part of the module behind Terraform's back. A plan has to show all changes, and an
// apply to repair them.
func (l *lab) expectDriftMended(w *acctest.Workspace) {
	l.Helper()
	l.alterTraining(w, "mnist")

	policy, err := engine.Get[domain.AutoscalingPolicyDocument](l.Context(), l.engine, "mnist/worker")
	l.must(err)
	policy.Spec.Max = 2
	_, err = engine.Put(l.Context(), l.engine, policy)
	l.must(err)

	l.must(reconcile.Reconciler{Engine: l.engine}.Destroy(l.Context(), "mnist-tensorboard"))

	l.expectMended(w, "mnist",
		"[create] trainyard_group.tensorboard[0]", "[update] trainyard_autoscaling_policy.this[0]",
		"[update] trainyard_files.this[0]", "[update] trainyard_group.this")
}
