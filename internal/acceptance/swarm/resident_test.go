//go:build linux

package swarm_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// A manager's socket isn't at the default path: the apply fails and plans warn, until hosts[].socket is set.
func TestAccSwarmControllerRejected(t *testing.T) {
	onEnginesAtNight(t, testAccSwarmControllerRejected)
}

func testAccSwarmControllerRejected(t *testing.T, engine string) {
	bed := ownBed(t, testbed.Options{Nodes: 1, Managers: 1, Rootless: true, Engine: engine})
	l := newSwarmLab(t, bed, "rootless")
	w := newSwarmWorkspace(l)
	const why = `The controller isn't running on host node1: invalid mount config for type "bind": bind source path does not exist: /var/run/docker.sock. ` +
		`The controller mounts the host's Docker socket. Run docker context inspect --format '{{.Endpoints.docker.Host}}' on the host, ` +
		`and set hosts["node1"].socket to the path after unix://. A host without a socket can't run the controller: make another host a manager.`
	job := func(worker, attributes string) string {
		return l.group(fmt.Sprintf("image = %q\n  roles = { worker = { replicas = 2, %s } }\n  %s", memberImage, worker,
			attributes))
	}
	running := job(`args = ["wait"]`, `completion = { when = "all" }`)
	const status = `
data "trainyard_cluster" "now" {
  name       = trainyard_cluster.lab.name
  engine     = "swarm"
  endpoint   = trainyard_cluster.lab.endpoint
  depends_on = [trainyard_cluster.lab]
}

output "controller" {
  value = "${data.trainyard_cluster.now.controller.state} on ${data.trainyard_cluster.now.controller.host}"
}

output "agents" {
  value = { for host, agent in data.trainyard_cluster.now.agents : host => agent.state }
}
`
	w.configure(l.cluster(""))
	output, err := w.Run("apply", "-auto-approve")
	if err == nil {
		t.Fatalf("the apply of a cluster whose controller can't run succeeded:\n%s", output)
	}
	acceptance.ExpectSaid(t, output, `Error: Controller or agents of cluster "rootless" not running`, why,
		"run terraform untaint first")
	if n := len(l.tasksOf(l.service("trainyard-rootless-agent").ID)); n != 1 {
		t.Errorf("%d agents are left, want 1", n)
	}
	w.Must("untaint", "trainyard_cluster.lab")

	w.configure(l.cluster(""), running, status)
	acceptance.ExpectSaid(t, w.Must("apply",
		"-auto-approve"), `Warning: Controller or agents of cluster "rootless" not running`, why,
		`Warning: No controller for group "rootless"`,
		`Until the controller runs, failed members are not restarted, and completion goes undetected.`,
		`controller = "failing on node1"`, `agents = { "node1" = "running" }`)

	// Without a controller nobody retries, but the apply still ends.
	w.configure(l.cluster(""), job(`command = ["/nowhere"], restart = { condition = "always" }`, ""), status)
	output, err = w.Run("apply", "-auto-approve")
	if err == nil {
		t.Errorf("a command that is not there was started:\n%s", output)
	}
	acceptance.ExpectSaid(t, output, "Error: Member failed", "member rootless-worker-", "OCI runtime create failed",
		"/nowhere")

	// With the path set, the controller runs and plans no longer warn.
	declared := strings.Replace(l.cluster(""), "network ",
		fmt.Sprintf("hosts    = { node1 = { socket = %q } }\n  network ", bed.Nodes[0].Socket), 1)
	w.configure(declared, running, status)
	acceptance.ExpectSaid(t, w.Must("apply", "-auto-approve"), `controller = "running on node1"`)
	if output := w.Must("plan"); strings.Contains(output, "Warning: Controller") {
		t.Errorf("with the controller:\n%s", output)
	}
	w.Must("destroy", "-auto-approve")
}

// Hosts with different Docker Engines and image stores form one cluster: residents run on all, and members from one
// image.
func TestAccSwarmMixed(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 3, Mixed: true})
	l := imageLab{newSwarmLab(t, bed, "motley"), "motley/trainer:1", t.TempDir()}
	id := l.memberArchive("trainer.tar")
	w := newSwarmWorkspace(l.swarmLab)
	workers := l.named("job", l.name, `
  framework = "spark"
  image     = trainyard_image.trainer.image_id
  args      = ["wait"]
  roles = {
    master = { replicas = 1, port = 7077 }
    worker = { replicas = 6 }
  }`) + l.named("spread", l.name+"-spread", `
  image = trainyard_image.trainer.image_id
  args  = ["wait"]
  roles = { worker = { replicas = 3, placement = { strategy = "spread" } } }`)
	w.configure(l.wholeBed(3), fmt.Sprintf(`
resource "trainyard_image" "trainer" {
  cluster = trainyard_cluster.lab
  name    = %q
  archive = %q
}

output "image_id" { value = trainyard_image.trainer.image_id }
`, l.image, filepath.Join(l.files, "trainer.tar")), workers, `
data "trainyard_utilisation" "now" {
  cluster    = trainyard_cluster.lab
  window     = "1s"
  depends_on = [trainyard_group.job, trainyard_group.spread]
}

output "measured" { value = [for host, u in data.trainyard_utilisation.now.hosts : host if u.cpus != null] }
`)
	acceptance.ExpectSaid(t, w.Must("apply", "-auto-approve"), fmt.Sprintf("image_id = %q", id),
		`measured = [ "node1", "node2", "node3", ]`)
	w.ExpectNoChange("on hosts of different Engines")

	// The controller's image has the same name on each of them.
	for range bed.Nodes {
		host := l.hostOfController(bed.Nodes[2])
		l.updateNode(host.Name,
			func(spec *dockerswarm.NodeSpec) { spec.Availability = dockerswarm.NodeAvailabilityPause })
		l.change("trainyard-motley-controller", func(spec *dockerswarm.ServiceSpec) { spec.TaskTemplate.ForceUpdate++ })
		if slices.ContainsFunc(bed.Nodes, func(n *testbed.Node) bool {
			return l.node(n.Name).Spec.Availability == dockerswarm.NodeAvailabilityActive
		}) {
			acctest.Eventually(t, "the controller to leave "+host.Name,
				func() bool { return l.hostOfController(bed.Nodes[2]) != host })
		}
	}
	for _, node := range bed.Nodes {
		l.updateNode(node.Name,
			func(spec *dockerswarm.NodeSpec) { spec.Availability = dockerswarm.NodeAvailabilityActive })
	}
	w.Must("destroy", "-auto-approve")
	l.expectImages(t.Context(), l.image)
}
