//go:build linux

package swarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The modules ps-worker and multiworker pass secrets to members, and show them nowhere. A new value needs a new
// version.
func TestAccSwarmModuleSecrets(t *testing.T) {
	acceptance.Test(t)
	acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, "multiworker"))
	w := newSwarmWorkspace(newSwarmLab(t, sharedBed(t), "sealed"))
	acceptance.WithModules(w.Workspace)
	first, second := credentials{"token": "a-canary-in-a-module"}, credentials{"token": "a-canary-of-another-kind"}
	configure := func(c credentials, version string) {
		attributes := fmt.Sprintf(`
  cluster       = trainyard_cluster.lab
  image         = %q
  command       = ["/member"]
  args          = ["file:/run/secrets/token", "wait"]
  secrets       = { token = { version = %q, mode = "0440" } }
  secret_values = { token = var.token }
`, memberImage, version)
		w.configure(c.set(w), w.cluster(""), `
module "synchronous" {
  source = "./modules/multiworker"
  name   = "sealed-sync"
  worker = { replicas = 1 }
`+attributes+`}

module "asynchronous" {
  source = "./modules/ps-worker"
  name   = "sealed-async"
  ps     = { replicas = 1 }
  worker = { replicas = 1 }
`+attributes+`}`)
		w.Must("get")
	}
	reads := func(want string) {
		t.Helper()
		for _, member := range []string{"sealed-sync-worker-0", "sealed-async-ps-0", "sealed-async-worker-0"} {
			acctest.Eventually(t, fmt.Sprintf("%s to write %q", member, want), func() bool {
				log := w.logs(member)
				return len(log) > 0 && log[len(log)-1] == want
			})
		}
	}

	configure(first, "1")
	first.hidden(w, "plan", "-out="+savedPlan)
	first.hidden(w, "apply", savedPlan)
	reads(`/run/secrets/token 440 "a-canary-in-a-module"`)
	first.hidden(w, "plan", "-detailed-exitcode")
	configure(second, "1")
	second.hidden(w, "plan", "-detailed-exitcode")
	configure(second, "2")
	second.hidden(w, "plan", "-out="+savedPlan)
	second.hidden(w, "apply", savedPlan)
	reads(`/run/secrets/token 440 "a-canary-of-another-kind"`)
	second.hidden(w, "plan", "-detailed-exitcode")
	second.hidden(w, "destroy", "-auto-approve")
}

// The network of a multiworker comes with a cluster of the same hosts: by the same names and labels, each with an
// agent. Without the module, the hosts are nodes of the Swarm as before, with the labels of the first cluster.
func TestAccSwarmModuleNetwork(t *testing.T) {
	acceptance.Test(t)
	acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, "multiworker"))
	w := newSwarmWorkspace(newSwarmLab(t, sharedBed(t), "apart"))
	acceptance.WithModules(w.Workspace)
	names := []string{"first", "second", "third"}
	var hosts []string
	for i, node := range w.bed.Nodes {
		host := fmt.Sprintf("%s = { address = %q, labels = { turn = %[1]q } }", names[i], node.Host())
		hosts = append(hosts, host)
	}
	lab := w.cluster("hosts = { " + strings.Join(hosts, ", ") + " }")
	w.configure(lab, fmt.Sprintf(`
module "training" {
  source  = "./modules/multiworker"
  cluster = trainyard_cluster.lab
  name    = "apart"
  image   = %q
  command = ["/member"]
  args    = ["wait"]
  network = {}
  worker  = { replicas = 1, placement = { hosts = ["second", "third"], labels = { turn = "third" } } }
}

data "trainyard_cluster" "own" {
  name       = module.training.cluster.name
  engine     = module.training.cluster.engine
  endpoint   = module.training.cluster.endpoint
  depends_on = [module.training]
}

output "placements" { value = module.training.placements }
output "agents"     { value = { for host, agent in data.trainyard_cluster.own.agents : host => agent.state } }
`, memberImage))
	w.Must("get")
	w.Must("apply", "-auto-approve") // labels and network are planned before they exist
	for output, want := range map[string]map[string]string{
		"placements": {"apart-worker-0": "third"},
		"agents":     {"first": "running", "second": "running", "third": "running"},
	} {
		var got map[string]string
		w.must(json.Unmarshal([]byte(w.Must("output", "-json", output)), &got))
		if err := acceptance.Differences(want, got); err != nil {
			t.Errorf("%s: %v", output, err)
		}
	}
	w.ExpectNoChange("with a network of its own")

	w.configure(lab)
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("without the module")
	docker := w.bed.Nodes[0].Client()
	nodes, err := docker.NodeList(context.WithoutCancel(t.Context()), dockerswarm.NodeListOptions{})
	w.must(err)
	turns := map[string]bool{}
	for _, node := range nodes {
		turns[node.Spec.Labels["turn"]] = node.Status.State == dockerswarm.NodeStateReady
		if _, marked := node.Spec.Labels["trainyard.apart-apart.labels"]; marked {
			t.Errorf("%s has labels of the module's cluster", node.Description.Hostname)
		}
	}
	if err := acceptance.Differences(map[string]bool{"first": true, "second": true, "third": true}, turns); err != nil {
		t.Errorf("the nodes by label, and whether they are ready: %v", err)
	}
	left, err := w.bed.Labelled(context.WithoutCancel(t.Context()), "trainyard.cluster=apart-apart")
	w.must(err)
	if len(left) > 0 {
		t.Errorf("of the module's cluster, there is still %q", left)
	}
}
