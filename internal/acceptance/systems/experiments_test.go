//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// learners are the runs of the module "pricing" whose agents learn quickly.
const learners = `
    q-learning = { environment = { agent = "q_learning", episodes = 200 }, learning = { epsilon_frames = 7000 } }
    dqn = {
      environment = { agent = "dqn", episodes = 80 }
      learning = {
        learning_rate = 0.001, replay_start = 300, target_frames = 200, epsilon_frames = 2500, hidden_units = 64
      }
    }`

// pricing is the configuration of the module with runs and more attributes.
func pricing(runs, attributes string) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

module "pricing" {
  source     = "./modules/experiments"
  cluster    = trainyard_cluster.lab
  name       = "pricing"
  started_by = "ada"
  runs       = {%s
  }
  %s
}

output "tensorboard" { value = module.pricing.tensorboard }
output "path"        { value = module.pricing.path }
`, runs, attributes)
}

// logsOfRuns reads the logs of the module's runs.
const logsOfRuns = `
data "trainyard_logs" "runs" {
  for_each   = module.pricing.members
  cluster    = trainyard_cluster.lab
  member     = each.value
  depends_on = [module.pricing]
}

output "logs" { value = { for key, log in data.trainyard_logs.runs : key => log.lines } }
`

// Both agents learn, with two seeds each. Beside them an endless run is paused, resumed, killed, cancelled by force,
// and removed; the hook is called once a run; drift of each part is mended; the results are downloaded, shown by
// TensorBoard, and collected by the destroy.
func TestSystemExperiments(t *testing.T) {
	t.Parallel()
	e := newExperiments(t)
	hook := newHook(t)
	results, collected := filepath.Join(t.TempDir(), "results"), filepath.Join(t.TempDir(), "collected")
	attributes := fmt.Sprintf(`
  seeds       = range(2)
  env         = { SAVE_SECONDS = "0.2" }
  results     = { path = %q, collect_to = %q, on_destroy = "delete" }
  tensorboard = { port = 18206 }
  on_finish   = { url = %q, timeout = "5m" }`, results, collected, hook.URL)
	const endless = `
    endless = { environment = { episodes = 10000000 } }`
	e.Write("main.tf", pricing(learners+endless, strings.Replace(attributes, "range(2)", "[0]", 1)))
	e.Must("get")
	e.Must("apply", "-auto-approve")
	e.goesOn("endless-seed-0", 0)

	// While paused, its process is stopped, and then continues where it was.
	pid := e.process("endless-seed-0")
	e.sweep("pause", "pricing/endless-seed-0")
	acctest.Eventually(t, "the run to be halted", func() bool { return halted(t, pid) })
	e.expectListed("endless-seed-0 ", " paused ", "paused by")
	e.ExpectNoChange("while a run is paused")
	at := e.episode("endless-seed-0")
	e.sweep("resume", "pricing/endless-seed-0")
	e.goesOn("endless-seed-0", at)
	e.expectListed("endless-seed-0 ", " running ")
	if again := e.process("endless-seed-0"); again != pid {
		t.Errorf("process %d is in the place of %d, want the same to go on", again, pid)
	}

	// When killed, it is retried from its checkpoint.
	checkpoint := filepath.Join(results, "pricing", "endless-seed-0", "checkpoint.npz")
	acctest.Eventually(t, "a checkpoint", func() bool { _, err := os.Stat(checkpoint); return err == nil })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "another attempt that goes on", func() bool {
		at := e.resumedAt("endless-seed-0")
		return e.runs()["endless-seed-0"].Attempts == 2 && at != nil && *at > 0
	})
	e.ExpectNoChange("after the death of a run")

	// When cancelled, it has ended, and the hook is called, unlike after its death; the others ended by themselves,
	// which another seed doesn't change. A sweep that somebody else has created is only changed by force.
	e.belongsTo("bob@elsewhere")
	refused, err := e.try("cancel", "pricing/endless-seed-0")
	if err == nil {
		t.Errorf("a run of somebody else is cancelled: %s", refused)
	}
	acceptance.ExpectSaid(t, refused, "bob@elsewhere", "--force")
	e.sweep("cancel", "pricing/endless-seed-0", "--force")
	e.expectListed("endless-seed-0 ", " cancelled ", "cancelled by")
	e.ExpectNoChange("with a run cancelled")
	ends := map[string]int{
		"dqn-seed-0 1 succeeded": 1, "q-learning-seed-0 1 succeeded": 1, "endless-seed-0 2 cancelled": 1,
	}
	hook.expect(ends)
	e.Write("main.tf", pricing(learners, attributes+"\n  wait_for    = \"completed\"")+logsOfRuns)
	e.Must("apply", "-auto-approve")
	e.ExpectNoChange("once all have ended")
	for key, run := range e.runs() {
		if run.State != domain.RunSucceeded || run.Attempts != 1 {
			t.Errorf("%s is %s after %d attempts, want it succeeded after one", key, run.State, run.Attempts)
		}
	}
	expectLogs(e.Workspace, 4)
	keys := []string{"dqn-seed-0", "dqn-seed-1", "q-learning-seed-0", "q-learning-seed-1"}
	expectLearnt(t, acceptance.Fetched(t, "pricing", "--endpoint", e.StateDir), 3, keys...)
	expectLearnt(t, acceptance.Fetched(t, "pricing/dqn-seed-1", "--endpoint", e.StateDir), 3, "dqn-seed-1")
	expectTensorBoard(e.Workspace, "http://127.0.0.1:18206", results)
	ends["dqn-seed-1 1 succeeded"], ends["q-learning-seed-1 1 succeeded"] = 1, 1
	hook.expect(ends)

	e.expectDriftMended(results)
	expectTensorBoard(e.Workspace, "http://127.0.0.1:18206", results)
	ends["q-learning-seed-1 1 succeeded"] = 2 // as its results were gone
	hook.expect(ends)

	e.Must("destroy", "-auto-approve")
	e.ExpectNobody("after the destroy")
	hook.expect(ends)
	archives, err := filepath.Glob(filepath.Join(collected, "lab-pricing-*.tar"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("the destroy has collected %q, %v; want one archive", archives, err)
	}
	expectLearnt(t, acceptance.Archived(t, archives[0]), 3, keys...)
	if left, err := os.ReadDir(filepath.Join(results, "pricing")); err == nil {
		for _, entry := range left {
			if entry.Name() != "endless-seed-0" { // removed before
				t.Errorf("%s is left of the results", entry.Name())
			}
		}
	}
}

// expectDriftMended changes each part of the module behind Terraform's back, whose runs have ended with results in a
// folder. A plan has to show all changes, and an apply to repair them.
func (e *experiments) expectDriftMended(results string) {
	e.Helper()
	l := labOf(e.t, e.Workspace)
	var path string
	l.must(json.Unmarshal([]byte(e.Must("output", "-json", "path")), &path))
	l.alter(filepath.Join(path, "market.py"), "# something else\n")
	l.must(reconcile.Reconciler{Engine: l.engine}.Destroy(l.Context(), "pricing-tensorboard"))
	l.must(os.RemoveAll(filepath.Join(results, "pricing", "q-learning-seed-1")))
	acceptance.ExpectSaid(e.t, e.Must("plan"), `Sweep "pricing": results are gone`,
		"these runs start anew: q-learning-seed-1.")
	l.expectMended(e.Workspace, "pricing", "[create] trainyard_group.tensorboard[0]",
		"[update] trainyard_files.this[0]", "[update] trainyard_sweep.this")

	l.must(os.Chmod(path, 0o700)) //nolint:gosec // a folder
	l.must(os.RemoveAll(path))
	l.expectMended(e.Workspace, "pricing", "[update] trainyard_files.this[0]")
}

// expectLogs fails unless the data source of logs has the complete logs of this many runs.
func expectLogs(w *acctest.Workspace, count int) {
	w.Helper()
	var logs map[string][]string
	if err := json.Unmarshal([]byte(w.Must("output", "-json", "logs")), &logs); err != nil {
		w.Fatal(err)
	}
	if len(logs) != count {
		w.Errorf("there are logs of %d runs, want %d", len(logs), count)
	}
	for key, lines := range logs {
		if len(lines) == 0 || !strings.Contains(lines[len(lines)-1], `"final_reward"`) {
			w.Errorf("the log of %s is %q", key, lines)
		}
	}
}

// The example at the start of the module's README learns as it is.
func TestSystemExperimentsReadme(t *testing.T) {
	e := newExperiments(t)
	e.Write("main.tf", readmeOf(t, "experiments"))
	e.Must("get")
	e.Must("apply", "-auto-approve")
	e.ExpectNoChange("after the learning")
	files := acceptance.Fetched(t, "experiments", "--endpoint", e.StateDir)
	expectLearnt(t, files, 3, "seed-0", "seed-1", "seed-2", "seed-3")

	work := filepath.Join(e.StateDir, "lab", "work")
	acceptance.ExpectSaid(t, e.Must("destroy", "-auto-approve"), `Results of sweep "experiments" are kept`, work)
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
}

// learnt is what a run leaves in run.json.
type learnt struct {
	Experiments, Run, Attempt, State string
	Host                             string
	StartedBy                        string `json:"started_by"`
	StartedAt                        string `json:"started_at"`
	EndedAt                          string `json:"ended_at"`
	GPUs                             string `json:"gpus"`
	Config                           json.RawMessage
	Result                           struct {
		FinalReward  float64 `json:"final_reward"`
		RandomReward float64 `json:"random_reward"`
	}
}

// expectLearnt fails unless exactly these runs have left complete results, and their agents earn at least this many
// times as much as random prices, and more in the end than at first.
func expectLearnt(t *testing.T, files map[string]string, times float64, keys ...string) (runs map[string]learnt) {
	t.Helper()
	runs = map[string]learnt{}
	for file := range files {
		if key, name, _ := strings.Cut(file, "/"); name == "run.json" {
			var run learnt
			if err := json.Unmarshal([]byte(files[file]), &run); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			runs[key] = run
		}
	}
	if len(runs) != len(keys) {
		t.Errorf("%d runs have left results, want %q", len(runs), keys)
	}
	for _, key := range keys {
		run := runs[key]
		if run.Run != key || run.State != "finished" || run.StartedAt == "" || run.EndedAt == "" {
			t.Errorf("%s has left %+v", key, run)
		}
		var config, used any
		if err := json.Unmarshal([]byte(files[key+"/config.json"]), &config); err != nil {
			t.Errorf("the config of %s: %v", key, err)
		}
		if err := json.Unmarshal(run.Config, &used); err != nil {
			t.Errorf("the config that %s used: %v", key, err)
		}
		if err := acceptance.Differences(config, used); err != nil {
			t.Errorf("%s used another config than it was given: %v", key, err)
		}
		if files[key+"/weights.npz"] == "" || files[key+"/checkpoint.npz"] != "" {
			t.Errorf("%s has left no weights, or a checkpoint", key)
		}
		rewards, final, random := rewardsOf(t, files[key+"/metrics.jsonl"]), run.Result.FinalReward,
			run.Result.RandomReward
		if len(rewards) < 10 || rewards[len(rewards)-1] <= rewards[0] || final < times*random || random <= 0 {
			t.Errorf("%s earns %v with what it has learnt, and %v at random; on the way %v", key, final, random,
				rewards)
		}
		t.Logf("%s: %.0f an episode, %.0f at random", key, final, random)
	}
	return runs
}

// rewardsOf returns the mean of each tenth of the rewards that a run recorded.
func rewardsOf(t *testing.T, metrics string) (means []float64) {
	t.Helper()
	var all []float64
	for line := range strings.Lines(metrics) {
		var noted struct{ Reward float64 }
		if err := json.Unmarshal([]byte(line), &noted); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, noted.Reward)
	}
	for i := range 10 {
		part := all[len(all)*i/10 : len(all)*(i+1)/10]
		sum := 0.0
		for _, reward := range part {
			sum += reward
		}
		if len(part) > 0 {
			means = append(means, sum/float64(len(part)))
		}
	}
	return means
}

// hook is called when runs end.
type hook struct {
	*httptest.Server
	t     *testing.T
	mutex sync.Mutex
	ends  map[string]int
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{t: t, ends: map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var end struct {
			Run, State string
			Attempt    int
		}
		if err := json.NewDecoder(r.Body).Decode(&end); err != nil {
			t.Errorf("a request to the hook can't be read: %v", err)
		}
		h.mutex.Lock()
		defer h.mutex.Unlock()
		h.ends[fmt.Sprintf("%s %d %s", end.Run, end.Attempt, end.State)]++
	}))
	t.Cleanup(h.Close)
	return h
}

// expect waits for this many calls, which have to be exactly these. After a destroy there can be no more of them.
func (h *hook) expect(want map[string]int) {
	h.t.Helper()
	calls := func(ends map[string]int) (n int) {
		for _, times := range ends {
			n += times
		}
		return n
	}
	var got map[string]int
	acctest.Eventually(h.t, fmt.Sprintf("the hook to be called %d times", calls(want)), func() bool {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		got = maps.Clone(h.ends)
		return calls(got) >= calls(want)
	})
	if err := acceptance.Differences(want, got); err != nil {
		h.t.Error(err)
	}
}
