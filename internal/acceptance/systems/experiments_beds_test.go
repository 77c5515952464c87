//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
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
	const port = 16006
	published := ""
	if s.image != "" {
		published = fmt.Sprint(", published_port = ", port)
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
  tensorboard  = { command = [%q]%s }
%s
  runs = {%s
  }
}

output "tensorboard" { value = module.pricing.tensorboard }
`, results, collected, attributes, filepath.Join(filepath.Dir(e.Python), "tensorboard"), published,
		s.members(mounts...), longer.Replace(learners))+logsOfRuns, s.withSecret(t, w))
	w.Must("plan", "-out="+savedPlan)
	finish := w.Start("apply", savedPlan)
	interrupted, lost := s.interruptRun(t, filepath.Join(results, "pricing"), keys)
	finish()
	w.Must("apply", "-refresh-only", "-auto-approve") // members may have moved during the apply
	expectLogs(w, 6)
	w.ExpectNoChange("once all have ended")
	s.expectHidden(w, membersOf(keys)...)

	const member, data = "pricing-tensorboard-web-0", "/data/runs"
	address := strings.TrimSpace(w.Must("output", "-raw", "tensorboard"))
	var runs []string
	acctest.Eventually(t, fmt.Sprintf("TensorBoard to show %d runs", shown), func() bool {
		return json.Unmarshal([]byte(s.get(member, address+data)), &runs) == nil && len(runs) >= shown
	})
	if published != "" {
		host, err := s.hostOf(member)
		if err != nil {
			t.Fatal(err)
		}
		content, err := s.fetch(host, port, data)
		if err != nil || json.Unmarshal(content, &runs) != nil || len(runs) < shown {
			t.Errorf("at its published port, TensorBoard answers %s, %v", content, err)
		}
	}

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
	for _, host := range s.hosts {
		moved := s.image != "" && host == lost // on a Swarm, all of its runs may have
		if !used[host] && !moved {
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
	found := s.image != "" || run.Host == lost // its checkpoint, which is on its host or on all
	if found && (run.ResumedAt == nil || *run.ResumedAt == 0) {
		t.Errorf("%s did not resume from its checkpoint after %s had lost its power: %s", interrupted, lost,
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

// interruptRun waits for a checkpoint of a DQN agent on another machine than the first, and cuts that machine's power.
// DQN agents learn for longest, and spread over the machines. It returns the key of the run, and the machine's name.
// The folder has the results of each run in a folder with its key.
func (s *site) interruptRun(t *testing.T, folder string, keys []string) (interrupted, host string) {
	t.Helper()
	acctest.Eventually(t, "a checkpoint of a DQN agent on another machine than the first", func() bool {
		for _, key := range keys {
			var err error
			if interrupted = key; !strings.HasPrefix(key, "dqn") {
				continue
			}
			if host, err = s.hostOf(memberOf(key)); err != nil || host == s.hosts[0] {
				continue
			}
			if _, err = s.shell(memberOf(key), "ls "+filepath.Join(folder, key, "checkpoint.npz")); err == nil {
				return true
			}
		}
		return false
	})
	s.loseHost(t, slices.Index(s.hosts, host), memberOf(interrupted))
	return interrupted, host
}
