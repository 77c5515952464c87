//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The values in the example "mpi".
const (
	mpiRanks  = 3
	mpiEpochs = 20
	// mpiImages is the number of images that a rank trains on per epoch, in batches of 32.
	mpiImages = 480
)

// mpiLine is a line that a rank of the example printed.
type mpiLine struct {
	Event     string `json:"event"`
	Rank      int    `json:"rank"`
	WorldSize int    `json:"world_size"`
	// Member is the worker that contains the rank.
	Member   string  `json:"member"`
	Epoch    int     `json:"epoch"`
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss"`
	Images   int     `json:"images"`
	Seconds  float64 `json:"seconds"`
	// Checksum is the checksum of the parameters.
	Checksum int64 `json:"checksum"`
}

// Three ranks of a real MPI train one model, one in each worker, without SSH. A rank raises an exception, a worker is
// killed, and then the launcher: each time all restart.
func TestSystemMPI(t *testing.T) {
	programs := acceptance.Python(t, "mpi")
	w, l := newWorkspace(t)
	l.files.Cluster = "mpi-lab"
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "mpi")))
	w.Write("terraform.tfvars", fmt.Sprintf("mpiexec = %q\nproxy = %q\npython = %q\nport = %d\n",
		filepath.Join(programs, "mpiexec"), filepath.Join(programs, "hydra_pmi_proxy"),
		filepath.Join(programs, "python3"), l.port))
	train := func(waitFor string) {
		w.Write("digits_override.tf", l.providerBlock()+fmt.Sprintf(`
resource "trainyard_group" "digits" {
  wait_for = %q
}`, waitFor))
	}

	train("completed")
	w.Must("apply", "-auto-approve")
	members := []string{"digits-launcher-0", "digits-worker-0", "digits-worker-1", "digits-worker-2"}
	l.check(l.changes("+"+members[0], "+"+members[1], "+"+members[2], "+"+members[3]))
	expectTrainedByMPI(t, w)
	for _, member := range members {
		if restarts := l.state(member).Restarts; restarts > 0 {
			t.Errorf("%s was restarted %d times, though nobody died", member, restarts)
		}
	}
	w.ExpectNoChange("after the training")

	// In the next start, one rank raises an exception after its first epoch.
	const loop = "for epoch in range(options.epochs):\n"
	program := filepath.Join(w.Dir, "train.py")
	text, err := os.ReadFile(program)
	l.must(err)
	raised := filepath.Join(t.TempDir(), "raised")
	w.Write("train.py", strings.Replace(string(text), loop, loop+fmt.Sprintf(`
        if rank == 1 and epoch == 1 and not os.path.exists(%[1]q):
            open(%[1]q, "w").close()
            raise MemoryError
`, raised), 1))

	const endless = "-var=epochs=1000000"
	train("running")
	w.Must("apply", "-auto-approve", endless)
	l.check(l.changes("~"+members[0], "~"+members[1], "~"+members[2], "~"+members[3]))
	l.awaitMPI(3, mpiRanks)
	l.check(l.changes("~"+members[0], "~"+members[1], "~"+members[2], "~"+members[3]))
	for i, victim := range []string{"digits-worker-1", "digits-launcher-0"} {
		l.kill(victim)
		l.awaitMPI(4+i, mpiRanks)
		l.check(l.changes("~"+members[0], "~"+members[1], "~"+members[2], "~"+members[3]))
	}

	// With fewer workers, the world size changes.
	w.Must("apply", "-auto-approve", endless, "-var=workers=2")
	l.awaitMPI(6, 2)
	l.check(l.changes("~"+members[0], "~"+members[1], "~"+members[2], "-"+members[3]))
	w.Must("plan", "-detailed-exitcode", endless, "-var=workers=2")
	w.Must("destroy", "-auto-approve", endless, "-var=workers=2")
	w.ExpectNobody("after destroy")
}

// awaitMPI waits until this many ranks train together: all are past their first epoch in this start.
func (l *lab) awaitMPI(start, ranks int) {
	l.Helper()
	acctest.Eventually(l, fmt.Sprintf("%d ranks that train, after start %d", ranks, start), func() bool {
		joined, trains := map[int]int{}, map[int]bool{}
		for _, line := range l.logs("digits-launcher-0")["digits-launcher-0"] {
			var entry mpiLine
			if json.Unmarshal([]byte(line), &entry) != nil {
				continue // from Hydra itself
			}
			switch entry.Event {
			case "joined":
				joined[entry.Rank]++
				delete(trains, entry.Rank)
			case "epoch":
				trains[entry.Rank] = entry.Epoch > 0 && entry.WorldSize == ranks
			}
		}
		for rank := range ranks {
			if joined[rank] < start || !trains[rank] {
				return false
			}
		}
		return true
	})
}

// expectTrainedByMPI fails unless the ranks have trained one model together, and well, each in a worker of its own.
func expectTrainedByMPI(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	var outputs struct {
		Phase    struct{ Value string }
		Accuracy struct{ Value float64 }
		Ranks    struct{ Value []mpiLine }
	}
	if err := json.Unmarshal([]byte(w.Must("output", "-json")), &outputs); err != nil {
		t.Fatal(err)
	}
	ranks := outputs.Ranks.Value
	if outputs.Phase.Value != "completed" || outputs.Accuracy.Value < 0.9 || len(ranks) != mpiRanks {
		t.Fatalf("%+v; want it completed with an accuracy of more than 0.9, by %d ranks", outputs, mpiRanks)
	}
	t.Logf("trained in %.1f s, to an accuracy of %.1f %%", ranks[0].Seconds, 100*outputs.Accuracy.Value)
	for i, rank := range ranks {
		want := ranks[0]
		want.Event, want.Rank, want.WorldSize, want.Seconds = "trained", i, mpiRanks, rank.Seconds
		want.Images, want.Member = mpiEpochs*mpiImages, fmt.Sprintf("digits-worker-%d", i)
		if err := acceptance.Differences(want, rank); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}
