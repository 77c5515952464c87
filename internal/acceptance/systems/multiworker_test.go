//go:build linux

package systems_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The module's own program trains with a real TensorFlow. A training whose workers are both killed resumes from its
// checkpoint, and ends with the weights of an undisturbed one; another training continues from its model.
func TestSystemMultiworker(t *testing.T) {
	const (
		cluster       = "multiworker-lab"
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
		w.Write("main.tf", fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "lab" {
  name = %q
}
`, cluster)+strings.Join(parts, "\n"))
		w.Must("get")
	}

	alone := train("alone", 5621, "")
	write(alone)
	w.Must("apply", "-auto-approve")
	joined, trained := expectSameRanks(w, "alone")
	if joined.Step != 0 || joined.Start != "" || trained.Step != epochs*steps || trained.Accuracy < 0.5 {
		t.Errorf("training goes from %+v to %+v, want all %d steps, and an accuracy of more than 0.5",
			joined, trained, epochs*steps)
	}
	w.ExpectNoChange("after the training")

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
