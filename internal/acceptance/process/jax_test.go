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

// The values in the example "jax".
const (
	jaxRanks  = 3
	jaxEpochs = 20
	// jaxImages is the number of images that a process trains on per epoch, in batches of 32.
	jaxImages = 480
)

// jaxLine is a line in the log of a process of the example.
type jaxLine struct {
	Event     string  `json:"event"`
	Rank      int     `json:"rank"`
	WorldSize int     `json:"world_size"`
	Epoch     int     `json:"epoch"`
	Accuracy  float64 `json:"accuracy"`
	Loss      float64 `json:"loss"`
	Images    int     `json:"images"`
	Seconds   float64 `json:"seconds"`
	// Checksum is the checksum of the parameters.
	Checksum int64 `json:"checksum"`
}

// Three processes of a real JAX train one model. Each of them is killed in turn, including the coordinator, and all
// restart.
func TestSystemJAX(t *testing.T) {
	python := filepath.Join(acceptance.Python(t, "jax"), "python3")
	w, l := newWorkspace(t)
	l.files.Cluster = "jax-lab"
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "jax")))
	w.Write("terraform.tfvars", fmt.Sprintf("python = %q\n", python))
	// An override changes the example's values.
	train := func(ranks int, waitFor string) {
		w.Write("spmd_override.tf", l.providerBlock()+fmt.Sprintf(`
locals {
  ranks = %d
}

resource "trainyard_group" "spmd" {
  roles    = { worker = { replicas = local.ranks, port = %d } }
  wait_for = %q
}`, ranks, l.port, waitFor))
	}

	train(jaxRanks, "completed")
	w.Must("apply", "-auto-approve", fmt.Sprintf("-var=epochs=%d", jaxEpochs))
	members := []string{"spmd-worker-0", "spmd-worker-1", "spmd-worker-2"}
	l.check(l.changes("+"+members[0], "+"+members[1], "+"+members[2]))
	expectTrainedByJAX(t, w)
	w.ExpectNoChange("after the training")

	const endless = "-var=epochs=1000000"
	train(jaxRanks, "running")
	w.Must("apply", "-auto-approve", endless)
	l.awaitJAX(members)
	l.check(l.changes("~"+members[0], "~"+members[1], "~"+members[2]))
	for _, victim := range members {
		before := l.instances()
		l.kill(victim)
		acctest.Eventually(t, "a new start of all after the death of "+victim, func() bool {
			after := l.instances()
			for _, member := range members {
				if after[member] == before[member] {
					return false
				}
			}
			return true
		})
		l.awaitJAX(members)
	}
	l.check(l.changes("~"+members[0], "~"+members[1], "~"+members[2]))
	w.Must("plan", "-detailed-exitcode", endless)

	// With fewer processes, the world size changes.
	train(jaxRanks-1, "running")
	w.Must("apply", "-auto-approve", endless)
	l.awaitJAX(members[:jaxRanks-1])
	l.check(l.changes("~"+members[0], "~"+members[1], "-"+members[2]))
	w.Must("destroy", "-auto-approve", endless)
	w.ExpectNobody("after destroy")
}

// awaitJAX waits until exactly these members train together, and each is past its first epoch.
func (l *lab) awaitJAX(members []string) {
	l.Helper()
	acctest.Eventually(l, fmt.Sprintf("%d processes that train", len(members)), func() bool {
		for _, lines := range l.logs(members...) {
			var last jaxLine
			for _, line := range lines {
				var entry jaxLine
				if json.Unmarshal([]byte(line), &entry) == nil && entry.Event != "" {
					last = entry
				}
			}
			if last.Event != "epoch" || last.Epoch == 0 || last.WorldSize != len(members) {
				return false
			}
		}
		return true
	})
}

// expectTrainedByJAX fails unless the processes have trained one model together, and well.
func expectTrainedByJAX(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	var outputs struct {
		Phase    struct{ Value string }
		Accuracy struct{ Value float64 }
		Ranks    struct{ Value []jaxLine }
	}
	if err := json.Unmarshal([]byte(w.Must("output", "-json")), &outputs); err != nil {
		t.Fatal(err)
	}
	ranks := outputs.Ranks.Value
	if outputs.Phase.Value != "completed" || outputs.Accuracy.Value < 0.9 || len(ranks) != jaxRanks {
		t.Fatalf("phase %s, accuracy %v, %d processes; want completed, more than 0.9, %d", outputs.Phase.Value,
			outputs.Accuracy.Value, len(ranks), jaxRanks)
	}
	t.Logf("trained in %.1f s, to an accuracy of %.1f %%", ranks[0].Seconds, 100*outputs.Accuracy.Value)
	for i, rank := range ranks {
		// Each has trained on its own images, and all report the same loss and the same parameters.
		want := ranks[0]
		want.Event, want.Rank, want.WorldSize, want.Images, want.Seconds = "trained", i, jaxRanks, jaxEpochs*jaxImages,
			rank.Seconds
		if err := acceptance.Differences(want, rank); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
}
