//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// rayLine is a line in the log of the program of the example "ray".
type rayLine struct {
	Event    string  `json:"event"`
	Trial    int     `json:"trial"`
	Node     string  `json:"node"`
	Accuracy float64 `json:"accuracy"`
	Trials   int     `json:"trials"`
	Nodes    int     `json:"nodes"`
	Seconds  float64 `json:"seconds"`
}

// A real Ray searches with a head and two workers, and ends with the search. In a second search a worker is killed,
// whose trials Ray moves to others, and a third worker is added: both get work, and no other is restarted.
func TestSystemRay(t *testing.T) {
	programs := acceptance.Python(t, "ray")
	w, l := newWorkspace(t)
	l.files.Cluster = "ray-lab"
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "ray")))
	temp, err := os.MkdirTemp("/tmp", "ray") //nolint:usetesting // a test's own folder is too long for socket paths
	l.must(err)
	t.Cleanup(func() { l.must(os.RemoveAll(temp)) })
	w.Write("terraform.tfvars", fmt.Sprintf("ray = %q\npython = %q\ntemp_dir = %q\nport = %d\n",
		filepath.Join(programs, "ray"), filepath.Join(programs, "python3"), temp, l.port))
	search := func(waitFor string) {
		w.Write("search_override.tf", l.providerBlock()+fmt.Sprintf(`
resource "trainyard_group" "search" {
  wait_for = %q
}`, waitFor))
	}

	search("completed")
	w.Must("apply", "-auto-approve", "-var=trials=6")
	l.check(l.changes("+search-head-0", "+search-submit-0", "+search-worker-0", "+search-worker-1"))
	l.expectSearchedByRay(w, 6)
	l.check(l.expectStates(map[string]domain.State{
		"search-head-0": domain.StateStopped, "search-worker-0": domain.StateStopped,
		"search-worker-1": domain.StateStopped,
	}))
	w.Must("plan", "-detailed-exitcode", "-var=trials=6")

	const more = "-var=trials=1000000"
	search("running")
	w.Must("apply", "-auto-approve", more)
	l.check(l.changes("~search-head-0", "~search-submit-0", "~search-worker-0", "~search-worker-1"))
	l.awaitRay("trials of both workers", func(trials map[int]string) bool { return nodesOf(trials) >= 2 })
	l.kill("search-worker-1")
	w.Must("apply", "-auto-approve", more, "-var=workers=3")
	l.check(l.changes("+search-worker-2", "~search-worker-1"))
	var until int
	l.awaitRay("trials of the dead worker, of the other one, and of two new ones", func(trials map[int]string) bool {
		until = slices.Max(slices.Collect(maps.Keys(trials)))
		return nodesOf(trials) >= 4
	})
	l.awaitRay("the trials that the dead worker had begun", func(trials map[int]string) bool {
		for trial := range until {
			if trials[trial] == "" {
				return false
			}
		}
		return true
	})
	w.Must("plan", "-detailed-exitcode", more, "-var=workers=3")
	w.Must("destroy", "-auto-approve", more)
	w.ExpectNobody("after destroy")
}

// nodesOf returns on how many of Ray's nodes these trials ended.
func nodesOf(trials map[int]string) int {
	nodes := map[string]bool{}
	for _, node := range trials {
		nodes[node] = true
	}
	return len(nodes)
}

// rayTrials returns the number of searches so far, and on which of Ray's nodes the trials of the last one ended.
func (l *lab) rayTrials() (searches int, trials map[int]string) {
	l.Helper()
	trials = map[int]string{}
	for _, line := range l.logs("search-submit-0")["search-submit-0"] {
		var entry rayLine
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // from Ray itself
		}
		switch entry.Event {
		case "joined":
			searches++
			clear(trials)
		case "trial":
			if trials[entry.Trial] != "" {
				l.Fatalf("trial %d has ended twice", entry.Trial)
			}
			trials[entry.Trial] = entry.Node
		}
	}
	return searches, trials
}

// awaitRay waits for trials of the second search that have ended on Ray's nodes.
func (l *lab) awaitRay(what string, enough func(trials map[int]string) bool) {
	l.Helper()
	acctest.Eventually(l, what, func() bool {
		searches, trials := l.rayTrials()
		return searches == 2 && len(trials) > 0 && enough(trials)
	})
}

// expectSearchedByRay fails unless this many trials have ended, with settings that classify digits well. They may all
// have ended on the node that was ready first.
func (l *lab) expectSearchedByRay(w *acctest.Workspace, trials int) {
	l.Helper()
	var outputs struct {
		Phase    struct{ Value string }
		Searched struct{ Value rayLine }
	}
	l.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
	result := outputs.Searched.Value
	if outputs.Phase.Value != "completed" || result.Accuracy < 0.9 || result.Trials != trials {
		l.Errorf("phase %s, %+v; want completed, an accuracy of more than 0.9, %d trials", outputs.Phase.Value, result,
			trials)
	}
	_, ended := l.rayTrials()
	if len(ended) != trials || nodesOf(ended) != result.Nodes {
		l.Errorf("the log has trials %v, want %d on %d nodes", ended, trials, result.Nodes)
	}
	l.Logf("%d trials on %d nodes of Ray in %.1f s, to an accuracy of %.1f %%",
		result.Trials, result.Nodes, result.Seconds, 100*result.Accuracy)
}
