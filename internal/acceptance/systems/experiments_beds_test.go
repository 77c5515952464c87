//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
)

// resultsOnHosts is the folder of results on bare hosts.
const resultsOnHosts = "/var/lib/results"

// Agents learn on bare hosts, each of which has the results of its own runs, until the destroy. TensorBoard shows those
// of its host. One of the hosts loses its power in the middle, and its run goes on once it is back.
func TestSystemExperimentsBareHosts(t *testing.T) {
	learnOn(t, onHosts, resultsOnHosts, `on_destroy = "delete"`, "", 1)
}

// Agents learn on a Swarm whose nodes share the folder of results. TensorBoard shows all of them, and the destroy keeps
// them. One of the nodes loses its power in the middle, and its run goes on on another.
func TestSystemExperimentsSwarm(t *testing.T) {
	const results = "/srv/results"
	shared := t.TempDir()
	mount := fmt.Sprintf(`{ source = %q, target = %q }`, shared, results)
	learnOn(t, onSwarm, results, "", mount, 6)
	kept, err := filepath.Glob(filepath.Join(shared, "pricing", "*", "weights.npz"))
	if err != nil || len(kept) != 6 {
		t.Errorf("the destroy has kept %q, %v; want the weights of six runs", kept, err)
	}
}

// longer makes runs last until a machine has lost its power. In long runs, a target network that follows too soon
// unlearns; theirs follows at the default pace.
var longer = strings.NewReplacer(
	"episodes = 200", "episodes = 1000", "episodes = 80", "episodes = 400", "target_frames = 200, ", "",
)

// learnOn runs six experiments on three machines, one of which loses its power meanwhile. The results are in a folder,
// with more attributes, and a mount for them if there is one. TensorBoard has to show at least this many of them, and
// the destroy to collect all. No secret may be seen anywhere.
func learnOn(
	t *testing.T, start func(*testing.T, pythonenv.Environment, int) *site,
	results, attributes, mount string, shown int,
) {
	t.Helper()
	keys := []string{
		"dqn-seed-0", "dqn-seed-1", "dqn-seed-2", "q-learning-seed-0", "q-learning-seed-1", "q-learning-seed-2",
	}
	e := newEnvironment(t, "rl")
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	acceptance.WithModules(w)
	s := start(t, e, 3)
	collected := filepath.Join(t.TempDir(), "collected")
	var mounts []string
	if mount != "" {
		mounts = append(mounts, mount)
	}
	configured(w, s.cluster, fmt.Sprintf(`
module "pricing" {
  source       = "./modules/experiments"
  cluster      = trainyard_cluster.lab
  name         = "pricing"
  seeds        = range(3)
  max_parallel = 6
  retry        = { delay = "1s" }
  wait_for     = "completed"
  env          = { SAVE_SECONDS = "0.2" }
  resources    = { limits = { cpus = 0.6 } }
  placement    = { strategy = "spread" }
  results      = { path = %q, collect_to = %q, %s }
  tensorboard  = { command = [%q] }
%s
  runs = {%s
  }
}

output "tensorboard" { value = module.pricing.tensorboard }
`, results, collected, attributes, filepath.Join(filepath.Dir(e.Python), "tensorboard"),
		s.members(mounts...), longer.Replace(learners))+logsOfRuns, s.withSecret(t, w))
	w.Must("plan", "-out="+savedPlan)
	finish := w.Start("apply", savedPlan)
	interrupted := s.interruptRun(t, filepath.Join(results, "pricing"), keys)
	finish()
	w.Must("apply", "-refresh-only", "-auto-approve") // members may have moved during the apply
	expectLogs(w, 6)
	w.ExpectNoChange("once all have ended")
	s.expectHidden(w, membersOf(keys)...)

	address := strings.TrimSpace(w.Must("output", "-raw", "tensorboard"))
	acctest.Eventually(t, fmt.Sprintf("TensorBoard to show %d runs", shown), func() bool {
		var runs []string
		content := s.get("pricing-tensorboard-web-0", address+"/data/runs")
		return json.Unmarshal([]byte(content), &runs) == nil && len(runs) >= shown
	})

	w.Must("destroy", "-auto-approve")
	s.expectNothing(t)
	archives, err := filepath.Glob(filepath.Join(collected, "lab-pricing-*.tar"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("the destroy has collected %q, %v; want one archive", archives, err)
	}
	files := acceptance.Archived(t, archives[0])
	used := map[string]bool{}
	for _, run := range expectLearnt(t, files, 3, keys...) {
		used[run.Host] = true
	}
	survivors := s.hosts
	if s.image != "" {
		survivors = s.hosts[:2] // runs of the other one may all have moved
	}
	for _, host := range survivors {
		if !used[host] {
			t.Errorf("the collected results are of %v, want some of %s", used, host)
		}
	}
	var run struct {
		Host      string
		ResumedAt *int `json:"resumed_at_episode"`
	}
	if err := json.Unmarshal([]byte(files[interrupted+"/run.json"]), &run); err != nil {
		t.Fatal(err)
	}
	found := s.image != "" || run.Host == s.hosts[2] // its checkpoint, which is on its host or on all
	if found && (run.ResumedAt == nil || *run.ResumedAt == 0) {
		t.Errorf("%s did not resume from its checkpoint after %s had lost its power: %s", interrupted, s.hosts[2],
			files[interrupted+"/run.json"])
	}
}

// memberOf returns the member of a run, given its key; membersOf returns those of several.
func memberOf(key string) string { return "pricing-" + key + "-0" }

func membersOf(keys []string) (members []string) {
	for _, key := range keys {
		members = append(members, memberOf(key))
	}
	return members
}

// interruptRun waits until each machine runs one of these experiments, cuts the power of the last one when its run has
// a checkpoint, and returns the key of that run. The folder has the results of each run in a folder with its key.
func (s *site) interruptRun(t *testing.T, folder string, keys []string) (interrupted string) {
	t.Helper()
	last := len(s.hosts) - 1
	members := membersOf(keys)
	s.awaitOnAll(t, members...)
	acctest.Eventually(t, "a checkpoint of a run on "+s.hosts[last], func() bool {
		for _, key := range keys {
			if on, err := s.hostOf(memberOf(key)); err != nil || on != s.hosts[last] {
				continue
			}
			_, err := s.shell(memberOf(key), "ls "+filepath.Join(folder, key, "checkpoint.npz"))
			if err == nil {
				interrupted = key
				return true
			}
		}
		return false
	})
	s.loseHost(t, last, memberOf(interrupted))
	return interrupted
}
