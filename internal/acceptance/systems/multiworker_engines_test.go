//go:build linux

package systems_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// emptyImage is the image of members of a Swarm here: everything they need is mounted.
const emptyImage = "trainyard/empty:1"

// What both engines share.
const (
	engineEpochs, engineSteps = 5, 20
	workload                  = `
module %[1]q {
  source          = "./modules/multiworker"
  cluster         = trainyard_cluster.lab
  name            = %[1]q
  image           = %[2]s
  python          = %[3]q
  worker          = { port = %[4]d, placement = { strategy = "one_per_host" }, resources = { limits = { cpus = 0.8 } } }
  epochs          = %[5]d
  steps_per_epoch = %[6]d
  learning_rate   = 0.005
  model_dir       = %[7]q
  wait_for        = "completed"
  %[8]s
}
`
)

// workloadOn returns the configuration of a workload: image is HCL, and null on bare hosts.
func workloadOn(e pythonenv.Environment, name, image string, port int, models, inputs string) string {
	return fmt.Sprintf(workload, name, image, e.Python, port, engineEpochs, engineSteps, models, inputs) +
		ranks(name)
}

// The same block trains on bare hosts and on a Swarm, and ends with the same weights. On the Swarm there are two
// workloads: the second has its own network, in which it uses the same ports, and neither reaches the other.
func TestSystemMultiworkerEngines(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, "tensorflow")
	models := t.TempDir()
	var bare, swarm rankLine
	t.Run("systemd", func(t *testing.T) { bare = trainOnHosts(t, e, filepath.Join(models, "systemd.keras")) })
	t.Run("swarm", func(t *testing.T) { swarm = trainOnSwarm(t, e, filepath.Join(models, "swarm.keras")) })
	if t.Failed() || bare.Event == "" || swarm.Event == "" {
		return // one of them was not requested
	}
	t.Logf("bare hosts end with a loss of %.6f and the checksum %d, the Swarm with %.6f and %d",
		bare.Loss, bare.Checksum, swarm.Loss, swarm.Checksum)
	const compare = `
import sys, numpy, keras
one, other = (keras.models.load_model(path, compile=False).get_weights() for path in sys.argv[1:])
assert len(one) == len(other) == 6
most = max(float(numpy.abs(a - b).max()) for a, b in zip(one, other))
print("the weights differ by", most, "at most")
sys.exit(most > 1e-5)`
	one, other := filepath.Join(models, "systemd.keras"), filepath.Join(models, "swarm.keras")
	command := exec.CommandContext(t.Context(), e.Python, "-c", compare, one, other) //nolint:gosec // our own
	output, err := command.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	t.Log(lines[len(lines)-1])
	if err != nil {
		t.Errorf("the weights of both engines: %v\n%s", err, output)
	}
}

// configured writes a configuration of these parts beside the modules.
func configured(w *acctest.Workspace, parts ...string) {
	w.Helper()
	w.Write("main.tf", `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
`+strings.Join(parts, "\n"))
	w.Must("get")
}

// trainOnHosts trains on two bare hosts, writes the model to a file, and returns worker 0's final line. The host of
// worker 1 loses its power in the middle: all go on from a checkpoint, and end with the weights as if nothing had
// happened.
func trainOnHosts(t *testing.T, e pythonenv.Environment, model string) rankLine {
	w := newTensorFlow(t)
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: 2, Mounts: e.Folders})
	var hosts strings.Builder
	for i, host := range bed.Hosts {
		fmt.Fprintf(&hosts, "    %s = { address = \"ssh://ops@%s\", advertise_address = \"%s:22\", role = %q }\n",
			host.Name, host.SSH, host.Address, []string{"manager", "worker"}[i])
	}
	const models, logs = "/var/tmp/models", "/var/tmp/logs"
	configured(w, fmt.Sprintf(`
provider "trainyard" {
  ssh = { identity_files = [%q], known_hosts_files = [%q] }
}

resource "trainyard_cluster" "lab" {
  name   = "multiworker-lab"
  engine = "systemd"
  hosts = {
%s  }
}
`, bed.KeyFile, bed.KnownHosts, &hosts), workloadOn(e, "one", "null", 5001, models, fmt.Sprintf("log_dir = %q", logs)))
	finish := w.Start("apply", "-auto-approve")
	losePower(t, bed, logs)
	finish()
	joined, trained := expectSameRanks(w, "one")
	if joined.Step < engineSteps {
		t.Errorf("after the loss of a host, training begins with %+v, want it from a checkpoint", joined)
	}
	w.ExpectNoChange("after the training on bare hosts")

	var saved []string
	for _, host := range bed.Hosts {
		if content, err := host.Run(t.Context(), "cat "+models+"/model.keras 2>/dev/null || true"); err != nil {
			t.Fatal(err)
		} else if content != "" {
			saved = append(saved, content)
		}
	}
	if len(saved) != 1 {
		t.Fatalf("%d hosts have the model, want that of worker 0 alone", len(saved))
	}
	if err := os.WriteFile(model, []byte(saved[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Must("destroy", "-auto-approve")
	s := &site{left: func() string { return leftOnHosts(t, bed, "multiworker-lab") }}
	s.expectNothing(t)
	return trained
}

// losePower waits for a checkpoint of a training, in a folder of worker 0's host, cuts the power of the other host, and
// boots it again.
func losePower(t *testing.T, bed *testbed.Hosts, folder string) {
	t.Helper()
	var first, victim *testbed.Host
	acctest.Eventually(t, "a checkpoint", func() bool {
		for i, host := range bed.Hosts {
			if _, err := host.Run(t.Context(), "ls "+folder+"/ckpt-*.index"); err == nil {
				first, victim = host, bed.Hosts[1-i]
				return true
			}
		}
		return false
	})
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	last := fmt.Sprintf("%s/ckpt-%d.index", folder, engineEpochs*engineSteps)
	if _, err := first.Run(t.Context(), "ls "+last); err == nil {
		t.Fatalf("%s has lost its power after the training, not in the middle: there is %s", victim.Name, last)
	}
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// planDockerfiles creates a cluster and plans the image of each module's Dockerfile there. Without a registry, none can
// be built.
func planDockerfiles(t *testing.T, w *acctest.Workspace, cluster string) {
	t.Helper()
	found, err := acceptance.Dockerfiles(acceptance.Modules)
	if err != nil || len(found) < 6 {
		t.Fatalf("the modules have the Dockerfiles %q, %v", found, err)
	}
	var says []string
	for _, file := range found {
		says = append(says, fmt.Sprintf(`trainyard_image.of["%s"] will be created`, file))
	}
	configured(w, cluster, fmt.Sprintf(`
resource "trainyard_image" "of" {
  for_each = toset(%s)
  cluster  = trainyard_cluster.lab
  name     = "${replace(lower(each.key), "/", "-")}:1"
  build    = { context = "${path.module}/modules/${dirname(each.key)}", dockerfile = basename(each.key) }
}
`, acceptance.List(found...)))
	w.Must("apply", "-auto-approve", "-target=trainyard_cluster.lab")
	says = append(says, fmt.Sprintf("%d to add, 0 to change, 0 to destroy", len(found)))
	acceptance.ExpectSaid(t, w.Must("plan"), says...)
}

// trainOnSwarm trains two workloads on a Swarm of two nodes, writes the model of the first to a file, and returns its
// worker 0's final line.
func trainOnSwarm(t *testing.T, e pythonenv.Environment, model string) rankLine {
	w := newTensorFlow(t)
	bed := testbed.New(t, testbed.Options{Nodes: 2, Managers: 1, Heartbeat: testbed.Steady})
	acctest.LoadMember(t, bed, emptyImage)
	docker := bed.Nodes[0].Client()
	folder := t.TempDir()
	models := fmt.Sprintf("{ source = %q, target = \"/srv/models\" }", folder)
	mounts := fmt.Sprintf("mounts = [\n    %s,\n%s\n  ]\n", models, e.Mounts())
	var hosts strings.Builder
	for _, node := range bed.Nodes {
		fmt.Fprintf(&hosts, "    %s = { address = %q }\n", node.Name, node.Host())
	}
	lab := fmt.Sprintf(`
resource "trainyard_cluster" "lab" {
  name     = "multiworker-lab"
  engine   = "swarm"
  endpoint = %q
  network  = { subnet = "192.168.0.0/24" }
  hosts = {
%s  }
}
`, bed.Nodes[0].Host(), &hosts)

	planDockerfiles(t, w, lab)

	configured(w, lab,
		workloadOn(e, "one", strconv.Quote(emptyImage), 5001, "/srv/models/one", mounts),
		workloadOn(e, "two", strconv.Quote(emptyImage), 5001, "/srv/models/two",
			mounts+"network = { subnet = \"10.10.0.0/24\" }"))
	w.Must("apply", "-auto-approve")
	_, trained := expectSameRanks(w, "one")
	_, second := expectSameRanks(w, "two")
	if second.Checksum != trained.Checksum {
		t.Errorf("the second workload ends with %+v, want the weights of the first, %+v", second, trained)
	}
	w.ExpectNoChange("after the training on a Swarm")

	subnets := map[string]string{}
	networks, err := docker.NetworkList(t.Context(), network.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		if cluster := n.Labels["trainyard.cluster"]; cluster != "" {
			subnets[cluster] = n.IPAM.Config[0].Subnet
		}
	}
	want := map[string]string{"multiworker-lab": "192.168.0.0/24", "multiworker-lab-two": "10.10.0.0/24"}
	if err := acceptance.Differences(want, subnets); err != nil {
		t.Errorf("the networks: %v", err)
	}

	expectApart(t, w, bed, e, lab)

	content, err := os.ReadFile(filepath.Join(folder, "one", "model.keras"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Must("destroy", "-auto-approve")
	s := &site{left: func() string {
		return strings.Join(leftOnNodes(t, bed, slices.Sorted(maps.Keys(want))...), "\n")
	}}
	s.expectNothing(t)
	return trained
}

// expectApart has both workloads serve instead of train, and fails unless the members of each can be reached by its own
// members, and not by those of the other, even by address.
func expectApart(t *testing.T, w *acctest.Workspace, bed *testbed.Bed, e pythonenv.Environment, lab string) {
	t.Helper()
	workloads := map[string]string{"one": "", "two": "network = { subnet = \"10.10.0.0/24\" }"}
	parts := []string{lab}
	for name, inputs := range workloads {
		parts = append(parts, fmt.Sprintf(`
module %[1]q {
  source  = "./modules/multiworker"
  cluster = trainyard_cluster.lab
  name    = %[1]q
  image   = %[2]q
  command = [%[3]q, "-m", "http.server", "{{ .Port }}", "--bind", "0.0.0.0"]
  worker  = { placement = { strategy = "one_per_host" } }
  mounts  = [
%[4]s
  ]
  %[5]s
}
`, name, emptyImage, e.Python, e.Mounts(), inputs))
	}
	configured(w, parts...)
	w.Must("apply", "-auto-approve")

	s := &site{}
	s.reachNodes(t, bed)
	run := func(member, program string, args ...string) (string, error) {
		return s.shell(member, fmt.Sprintf("%s -c '%s' %s", e.Python, program, strings.Join(args, " ")))
	}
	const (
		resolve = "import socket, sys; print(socket.gethostbyname(sys.argv[1]))"
		connect = "import socket, sys; socket.create_connection((sys.argv[1], 5001), timeout=5)"
	)
	for name := range workloads {
		var address string
		acctest.Eventually(t, "the members of "+name+" to reach each other", func() bool {
			found, err := run(name+"-worker-0", resolve, name+"-worker-1")
			if address = strings.TrimSpace(found); err == nil {
				_, err = run(name+"-worker-0", connect, address)
			}
			return err == nil
		})
		other := map[string]string{"one": "two", "two": "one"}[name] + "-worker-0"
		if output, err := run(other, connect, address); err == nil {
			t.Errorf("%s reaches %s-worker-1 at %s", other, name, address)
		} else if !strings.Contains(output, "timed out") && !strings.Contains(output, "unreachable") &&
			!strings.Contains(output, "No route") && !strings.Contains(output, "refused") {
			t.Errorf("%s could not try to reach %s: %v\n%s", other, address, err, output)
		}
	}
}
