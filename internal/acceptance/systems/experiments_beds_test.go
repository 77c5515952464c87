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
// of its host.
func TestSystemExperimentsBareHosts(t *testing.T) {
	learnOn(t, onHosts, fmt.Sprintf(`path = %q, on_destroy = "delete"`, resultsOnHosts), "", 1)
}

// Agents learn on a Swarm whose nodes share the folder of results. TensorBoard shows all of them, and the destroy keeps
// them.
func TestSystemExperimentsSwarm(t *testing.T) {
	shared := t.TempDir()
	mount := fmt.Sprintf(`{ source = %q, target = "/srv/results" }`, shared)
	learnOn(t, onSwarm, `path = "/srv/results"`, mount, 6)
	kept, err := filepath.Glob(filepath.Join(shared, "pricing", "*", "weights.npz"))
	if err != nil || len(kept) != 6 {
		t.Errorf("the destroy has kept %q, %v; want the weights of six runs", kept, err)
	}
}

// learnOn runs six experiments on three machines, with these attributes of results, and a mount for them if there is
// one. TensorBoard has to show at least this many of them, and the destroy to collect all.
func learnOn(t *testing.T, start func(*testing.T, pythonenv.Environment, int) *site, results, mount string, shown int) {
	t.Helper()
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
  max_parallel = 3
  wait_for     = "completed"
  resources    = { limits = { cpus = 0.6 } }
  placement    = { strategy = "spread" }
  results      = { %s, collect_to = %q }
  tensorboard  = { command = [%q] }
%s
  runs = {%s
  }
}

data "trainyard_sweep" "pricing" {
  cluster    = trainyard_cluster.lab
  name       = module.pricing.name
  depends_on = [module.pricing]
}

output "hosts"       { value = { for key, run in data.trainyard_sweep.pricing.runs : key => run.host } }
output "tensorboard" { value = module.pricing.tensorboard }
`, results, collected, filepath.Join(filepath.Dir(e.Python), "tensorboard"), s.members(mounts...), learners)+logsOfRuns)
	w.Must("apply", "-auto-approve")
	s.expectOnAll(w, "hosts")
	expectLogs(w, 6)
	w.ExpectNoChange("once all have ended")

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
	keys := []string{
		"dqn-seed-0", "dqn-seed-1", "dqn-seed-2", "q-learning-seed-0", "q-learning-seed-1", "q-learning-seed-2",
	}
	var hosts []string
	for _, run := range expectLearnt(t, acceptance.Archived(t, archives[0]), 3, keys...) {
		hosts = append(hosts, run.Host)
	}
	slices.Sort(hosts)
	if used := slices.Compact(hosts); !slices.Equal(used, slices.Sorted(slices.Values(s.hosts))) {
		t.Errorf("the collected results are of %v, want them of %v", used, s.hosts)
	}
}
