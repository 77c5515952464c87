//go:build linux

package systems_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// The module's own program trains with a real TensorFlow. Changes by others to any part are seen and repaired. A
// training whose workers are both killed resumes from its checkpoint, and ends with the weights of an undisturbed one;
// another training continues from its model.
func TestSystemMultiworker(t *testing.T) {
	const (
		cluster       = "lab"
		epochs, steps = 4, 20
	)
	w := newTensorFlow(t)
	folder := t.TempDir()
	train := func(name string, port int, inputs string) string {
		return fmt.Sprintf(`
module %[1]q {
  source          = "./modules/multiworker"
  cluster         = trainyard_cluster.lab
  name            = %[1]q
  worker          = { port = %[2]d, resources = { limits = { cpus = 0.8 } } }
  epochs          = %[3]d
  steps_per_epoch = %[4]d
  learning_rate   = 0.005
  log_dir         = "%[5]s/%[1]s/logs"
  model_dir       = "%[5]s/%[1]s/models"
  wait_for        = "completed"
  %[6]s
}
`, name, port, epochs, steps, folder, inputs) + ranks(name)
	}
	write := func(parts ...string) {
		w.Write("main.tf", inLab+strings.Join(parts, "\n"))
		w.Must("get")
	}

	alone := train("alone", 5621, "tensorboard     = { port = 5629 }") +
		`output "path" { value = module.alone.path }`
	write(alone)
	w.Must("apply", "-auto-approve")
	joined, trained := expectSameRanks(w, "alone")
	if joined.Step != 0 || joined.Start != "" || trained.Step != epochs*steps || trained.Accuracy < 0.5 {
		t.Errorf("training goes from %+v to %+v, want all %d steps, and an accuracy of more than 0.5",
			joined, trained, epochs*steps)
	}
	w.ExpectNoChange("after the training")
	labOf(t, w).expectAloneMended(w)

	killed := train("killed", 5631, "")
	write(alone, killed)
	finish := w.Start("apply", "-auto-approve")
	awaitCheckpoint(w, filepath.Join(folder, "killed", "logs"), steps)
	for rank := range workers {
		killTrainer(w, cluster, fmt.Sprintf("killed-worker-%d", rank))
	}
	finish()
	resumed, ended := expectSameRanks(w, "killed")
	if resumed.Step < steps || resumed.Step%steps != 0 || !strings.Contains(resumed.Start, "/killed/logs/ckpt-") {
		t.Errorf("after both workers were killed, training begins with %+v, want it from the last checkpoint", resumed)
	}
	if ended.Checksum != trained.Checksum || ended.Loss != trained.Loss {
		t.Errorf("a training that was killed ends with %+v, want the weights of one that was left alone: %+v",
			ended, trained)
	}

	write(alone, killed, train("further", 5641, "initial_model = module.alone.model"))
	w.Must("apply", "-auto-approve")
	began, further := expectSameRanks(w, "further")
	model := filepath.Join(folder, "alone", "models", "model.keras")
	if began.Start != model || began.Step != 0 || further.Loss >= trained.Loss {
		t.Errorf("training goes from %+v to %+v, want it from %s to a loss of less than %v",
			began, further, model, trained.Loss)
	}
	w.ExpectNoChange("after three trainings")

	w.Must("destroy", "-auto-approve")
	w.ExpectNobody("after the destroy")
	if _, err := os.Stat(model); err != nil {
		t.Errorf("the model went with the group: %v", err)
	}
}

// expectAloneMended changes each part of the module "alone" behind Terraform's back. A plan has to show all changes,
// and an apply to repair them.
func (l *lab) expectAloneMended(w *acctest.Workspace) {
	l.Helper()
	l.alterTraining(w, "alone")

	l.must(reconcile.Reconciler{Engine: l.engine}.Destroy(l.Context(), "alone-tensorboard"))
	l.expectMended(w, "alone",
		"[create] trainyard_group.tensorboard[0]", "[update] trainyard_files.this[0]",
		"[update] trainyard_group.this")
}

// The example at the start of the module's README trains, here with fewer epochs.
func TestSystemMultiworkerReadme(t *testing.T) {
	const epochs = 2
	w := newTensorFlow(t)
	config, waits := readmeOf(t, "multiworker"), "  wait_for = \"completed\"\n"
	if !strings.Contains(config, waits) {
		t.Fatalf("the configuration of the README has no %q", waits)
	}
	config = strings.Replace(config, waits, fmt.Sprintf("%s  epochs   = %d\n", waits, epochs), 1)
	w.Write("main.tf", config+ranksOf("mnist", "multiworker"))
	w.Must("get")
	w.Must("apply", "-auto-approve")
	joined, trained := expectSameRanks(w, "mnist")
	if joined.Step != 0 || trained.Step != epochs*70 || trained.Accuracy < 0.5 {
		t.Errorf("training goes from %+v to %+v, want %d epochs of 70 steps, and an accuracy of more than 0.5",
			joined, trained, epochs)
	}
	w.ExpectNoChange("after the training")
	w.Must("destroy", "-auto-approve")
	w.ExpectNobody("after the destroy")
}
