//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// daskLine is a line in the log of the program of the example "dask".
type daskLine struct {
	Event    string  `json:"event"`
	Round    int     `json:"round"`
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	Seconds  float64 `json:"seconds"`
	// Checksum is the checksum of the weights.
	Checksum int64 `json:"checksum"`
	// Workers are the processes of the workers that have trained in the round.
	Workers map[string]int `json:"workers"`
}

// A real Dask trains with a scheduler and two workers, and ends with the training. In a second training a worker is
// killed, and a third one is added: both get work, no other is restarted, and the weights equal those of the first
// training.
func TestSystemDask(t *testing.T) {
	const rounds = 20 // as in the example
	programs := acceptance.Python(t, "dask")
	w, l := newWorkspace(t)
	l.files.Cluster = "dask-lab"
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "dask")))
	w.Env("TMPDIR", t.TempDir()) // workers create their folders here
	w.Write("terraform.tfvars", fmt.Sprintf("dask = %q\npython = %q\nport = %d\n",
		filepath.Join(programs, "dask"), filepath.Join(programs, "python3"), l.port))
	train := func(waitFor string) {
		w.Write("digits_override.tf", l.providerBlock()+fmt.Sprintf(`
resource "trainyard_group" "digits" {
  wait_for = %q
}`, waitFor))
	}

	train("completed")
	w.Must("apply", "-auto-approve")
	l.check(l.changes("+digits-scheduler-0", "+digits-client-0", "+digits-worker-0", "+digits-worker-1"))
	trained := l.expectTrainedByDask(w)
	l.check(l.expectStates(map[string]domain.State{
		"digits-scheduler-0": domain.StateStopped,
		"digits-worker-0":    domain.StateStopped, "digits-worker-1": domain.StateStopped,
	}))
	w.ExpectNoChange("after the training")

	const endless = "-var=rounds=1000000"
	train("running")
	w.Must("apply", "-auto-approve", endless)
	l.check(l.changes("~digits-scheduler-0", "~digits-client-0", "~digits-worker-0", "~digits-worker-1"))
	var before int
	l.awaitDask("a round with both workers", func(last daskLine) bool {
		before = last.Workers["digits-worker-1"]
		return len(last.Workers) == 2
	})
	l.kill("digits-worker-1")
	w.Must("apply", "-auto-approve", endless, "-var=workers=3")
	l.check(l.changes("+digits-worker-2", "~digits-worker-1"))
	l.awaitDask("a round with three workers, one of them new", func(last daskLine) bool {
		return last.Round >= rounds && len(last.Workers) == 3 && last.Workers["digits-worker-1"] != before
	})
	for _, line := range l.daskLines(2) {
		if line.Round == rounds-1 && line.Checksum != trained.Checksum {
			t.Errorf("with the death of a worker, the weights after %d rounds have the checksum %d, without it %d",
				rounds, line.Checksum, trained.Checksum)
		}
	}
	w.Must("plan", "-detailed-exitcode", endless, "-var=workers=3")
	w.Must("destroy", "-auto-approve", endless)
	w.ExpectNobody("after destroy")
}

// daskLines returns the program's output in this training, counted from 1; empty before that.
func (l *lab) daskLines(training int) (lines []daskLine) {
	l.Helper()
	for _, line := range l.logs("digits-client-0")["digits-client-0"] {
		var entry daskLine
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // from Dask itself
		}
		if entry.Event == "joined" {
			training--
		}
		if training == 0 {
			lines = append(lines, entry)
		}
	}
	return lines
}

// awaitDask waits for a round of the second training.
func (l *lab) awaitDask(what string, enough func(last daskLine) bool) {
	l.Helper()
	acctest.Eventually(l, what, func() bool {
		lines := l.daskLines(2)
		return len(lines) > 0 && enough(lines[len(lines)-1])
	})
}

// expectTrainedByDask returns the program's final line, and fails unless it has trained well.
func (l *lab) expectTrainedByDask(w *acctest.Workspace) daskLine {
	l.Helper()
	var outputs struct {
		Phase   struct{ Value string }
		Trained struct{ Value daskLine }
	}
	l.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
	result, lines := outputs.Trained.Value, l.daskLines(1)
	if outputs.Phase.Value != "completed" || result.Accuracy < 0.9 || result.Checksum == 0 {
		l.Fatalf("phase %s, %+v; want completed, an accuracy of more than 0.9", outputs.Phase.Value, result)
	}
	first, last := lines[1], lines[len(lines)-2]
	if last.Loss >= first.Loss || last.Checksum != result.Checksum {
		l.Errorf("the rounds lead from %+v to %+v, want the loss to fall, and the checksum %d", first, last,
			result.Checksum)
	}
	l.Logf("trained in %.1f s, to an accuracy of %.1f %%", result.Seconds, 100*result.Accuracy)
	return result
}
