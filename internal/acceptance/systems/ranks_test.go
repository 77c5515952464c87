//go:build linux

package systems_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// workers is the number of workers of each training here.
const workers = 2

// rankLine is a line of a worker of the module "multiworker": when it joined, after each epoch, and when it has
// trained.
type rankLine struct {
	Event     string  `json:"event"`
	Rank      int     `json:"rank"`
	WorldSize int     `json:"world_size"`
	Step      int     `json:"step"`
	Epoch     int     `json:"epoch"`
	Loss      float64 `json:"loss"`
	Accuracy  float64 `json:"accuracy"`
	Checksum  int64   `json:"checksum"`
	Seconds   float64 `json:"seconds"`
	Host      string  `json:"host"`
	// Start is the file from which training resumed.
	Start string `json:"start"`
}

// ranks returns the configuration of data sources with the logs of the workers of a module that has its group's name.
func ranks(name string) string { return ranksOf(name, name) }

// ranksOf returns the configuration of data sources with the logs of the workers of a module's group.
func ranksOf(module, group string) string {
	return fmt.Sprintf(`
data "trainyard_logs" %[1]q {
  count      = %[2]d
  cluster    = module.%[1]s.cluster
  member     = "%[3]s-worker-${count.index}"
  tail       = 0
  depends_on = [module.%[1]s]
}

output %[1]q { value = data.trainyard_logs.%[1]s[*].lines }
`, module, workers, group)
}

// rankLines returns each worker's lines since its last start, by rank.
func rankLines(w *acctest.Workspace, name string) [][]rankLine {
	w.Helper()
	var logs [][]string
	if err := json.Unmarshal([]byte(w.Must("output", "-json", name)), &logs); err != nil {
		w.Fatal(err)
	}
	all := make([][]rankLine, len(logs))
	for rank, lines := range logs {
		for _, text := range lines {
			var line rankLine
			if json.Unmarshal([]byte(text), &line) != nil || line.Event == "" {
				continue // from TensorFlow itself
			}
			if line.Event == "joined" {
				all[rank] = nil
			}
			all[rank] = append(all[rank], line)
		}
	}
	return all
}

// expectSameRanks fails unless all workers have trained together to the end: each reports the same about every epoch,
// and has the same weights. It returns worker 0's first and last lines.
func expectSameRanks(w *acctest.Workspace, name string) (joined, trained rankLine) {
	w.Helper()
	all := rankLines(w, name)
	if len(all) != workers {
		w.Fatalf("%s has the logs of %d workers, want %d", name, len(all), workers)
	}
	for rank, lines := range all {
		whole := len(lines) >= 2 && lines[0].Event == "joined" && lines[len(lines)-1].Event == "trained"
		if !whole || len(lines) != len(all[0]) {
			w.Fatalf("worker %d of %s says %+v, want it to have joined and trained:\n%s",
				rank, name, lines, w.Must("output", name))
		}
		for i, line := range lines {
			want := all[0][i]
			want.Rank, want.WorldSize, want.Seconds = rank, workers, line.Seconds
			want.Host, want.Start = line.Host, line.Start // hosts differ, and only worker 0 has files
			if err := acceptance.Differences(want, line); err != nil {
				w.Errorf("worker %d of %s: %v", rank, name, err)
			}
		}
	}
	first := all[0]
	joined, trained = first[0], first[len(first)-1]
	w.Logf("%s: %d workers, from step %d to %d, loss %.4f, accuracy %.1f %%, in %.1f s",
		name, workers, joined.Step, trained.Step, trained.Loss, 100*trained.Accuracy, trained.Seconds)
	return joined, trained
}

// killTrainer kills a member's program wherever it runs on this machine, including in containers and hosts of a bed.
func killTrainer(w *acctest.Workspace, cluster, member string) {
	w.Helper()
	acctest.Eventually(w, "the program of "+member, func() bool {
		killed := false
		for _, pid := range trainers(cluster, member) {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
		}
		return killed
	})
}

// trainers returns the processes on this machine that run train.py for a member.
func trainers(cluster, member string) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		of := bytes.Split(environ, []byte{0})
		has := func(variable string) bool {
			return slices.ContainsFunc(of, func(entry []byte) bool { return string(entry) == variable })
		}
		trains := err == nil && bytes.HasSuffix(command, []byte("/train.py\x00"))
		if !trains || !has("TRAINYARD_CLUSTER="+cluster) || !has("TRAINYARD_MEMBER="+member) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
