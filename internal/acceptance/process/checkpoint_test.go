//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The training of the example "checkpoint" is killed and continues from its last checkpoint, as does one that was
// destroyed. Its result is that of an uninterrupted training.
func TestSystemCheckpoint(t *testing.T) {
	const epochs = 20 // as in the example
	python := filepath.Join(acceptance.Python(t, "dask"), "python3")
	w, l := newWorkspace(t)
	l.files.Cluster = "checkpoint-lab"
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "checkpoint")))
	train := func(folder, waitFor string) {
		w.Write("terraform.tfvars", fmt.Sprintf("python = %q\nfolder = %q\n", python, folder))
		w.Write("digits_override.tf", l.providerBlock()+fmt.Sprintf(`
resource "trainyard_group" "digits" {
  wait_for = %q
}`, waitFor))
	}

	train(t.TempDir(), "completed")
	w.Must("apply", "-auto-approve")
	var outputs struct {
		Phase   struct{ Value string }
		Starts  struct{ Value []int }
		Trained struct{ Value acceptance.Checkpoint }
	}
	l.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
	whole := outputs.Trained.Value
	if outputs.Phase.Value != "completed" || whole.Accuracy < 0.9 || whole.Epoch != epochs ||
		len(outputs.Starts.Value) != 1 {
		t.Fatalf("%+v; want it completed after %d epochs with an accuracy of more than 0.9", outputs, epochs)
	}
	t.Logf("trained to an accuracy of %.1f %%", 100*whole.Accuracy)
	w.ExpectNoChange("after the training")
	w.Must("destroy", "-auto-approve")

	const endless = "-var=epochs=1000000"
	train(filepath.Join(t.TempDir(), "made", "by", "the", "program"), "running")
	begun := func(starts, epoch int) {
		t.Helper()
		acctest.Eventually(t, fmt.Sprintf("epoch %d, after start %d", epoch, starts), func() bool {
			lines := l.logs("digits-worker-0")["digits-worker-0"]
			return acceptance.Resumed(t, lines, starts, epoch, whole)
		})
	}
	w.Must("apply", "-auto-approve", endless)
	begun(1, 3)
	l.kill("digits-worker-0")
	begun(2, epochs+1) // past the epoch that is compared

	w.Must("apply", "-auto-approve", endless) // to distinguish the starts
	w.Must("plan", "-detailed-exitcode", endless)
	w.Must("destroy", "-auto-approve", endless)

	w.Must("apply", "-auto-approve", endless)
	acctest.Eventually(t, "a training that goes on where the destroyed one was", func() bool {
		var first acceptance.Checkpoint
		lines := l.logs("digits-worker-0")["digits-worker-0"]
		return len(lines) > 0 && json.Unmarshal([]byte(lines[0]), &first) == nil &&
			first.Event == "resumed" && first.Epoch > epochs
	})
	w.Must("destroy", "-auto-approve", endless)
	w.ExpectNobody("after destroy")
}
