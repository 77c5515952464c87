//go:build linux

package systems_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// site is a set of machines that form the cluster "lab", whose members run a Python of this machine.
type site struct {
	// cluster is the configuration of the provider and the cluster, without the terraform block.
	cluster string
	// python is the path of the Python with its packages on the machines.
	python string
	// image is the members' image on a Swarm; "" on bare hosts. mounts is the configuration of what they then see of
	// this machine.
	image, mounts string
	// hosts are the names of the machines.
	hosts []string
	// shell runs a command where a member runs, and returns its output; kill sends a signal to all processes of a
	// member.
	shell func(member, command string) (string, error)
	kill  func(member, signal string) error
	// killController kills the controller of the cluster.
	killController func() error
	// lose removes the last of the members of an interchangeable role, such as "spark-worker", of which there are this
	// many, behind Terraform's back.
	lose func(role string, count int) error
	// left describes what is left of the cluster, by machine.
	left func() string
}

// newEnvironment returns a Python environment.
func newEnvironment(t *testing.T, name string) pythonenv.Environment {
	t.Helper()
	e, err := pythonenv.Of(t.Context(), acceptance.Python(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// onHosts returns this many bare hosts with the environment mounted. If its Python is this machine's /usr/bin/python3,
// the hosts' own must have the same minor version.
func onHosts(t *testing.T, e pythonenv.Environment, count int) *site {
	t.Helper()
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: count, Mounts: e.Folders})
	s := &site{python: e.Python}
	var hosts strings.Builder
	for i, host := range bed.Hosts {
		s.hosts = append(s.hosts, host.Name)
		fmt.Fprintf(&hosts, "    %s = { address = \"ssh://ops@%s\", advertise_address = \"%s:22\", role = %q }\n",
			host.Name, host.SSH, host.Address, map[bool]string{true: "manager", false: "worker"}[i == 0])
	}
	s.cluster = fmt.Sprintf(`
provider "trainyard" {
  ssh = { identity_files = [%q], known_hosts_files = [%q] }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "systemd"
  hosts = {
%s  }
}
`, bed.KeyFile, bed.KnownHosts, &hosts)
	s.reachHosts(t, bed)
	s.left = func() (left string) {
		for _, host := range bed.Hosts {
			found, err := host.Run(context.WithoutCancel(t.Context()), fmt.Sprintf("ls -d %s/lab 2>/dev/null; "+
				"find %s -type f 2>/dev/null; "+
				"systemctl list-units --all --plain --no-legend 'trainyard@lab.service' 'trainyard-lab-*' | "+
				"grep -v ' inactive *dead '; :",
				layout.Clusters, resultsOnHosts))
			if err != nil {
				t.Fatal(err)
			}
			if found = strings.TrimSpace(found); found != "" {
				left += host.Name + ": " + found + "\n"
			}
		}
		return left
	}
	return s
}

// onSwarm returns a Swarm of this many nodes. Members are containers of a small image that see this machine's system
// and the environment, read-only.
func onSwarm(t *testing.T, e pythonenv.Environment, count int) *site {
	t.Helper()
	bed := testbed.New(t, testbed.Options{Nodes: count, Managers: 1})
	s := &site{python: e.Python, image: "trainyard/base:1", mounts: e.Mounts()}
	acctest.LoadMember(t, bed, s.image)
	var hosts strings.Builder
	for _, node := range bed.Nodes {
		s.hosts = append(s.hosts, node.Name)
		fmt.Fprintf(&hosts, "    %s = { address = %q }\n", node.Name, node.Host())
	}
	s.cluster = fmt.Sprintf(`
resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"
  hosts = {
%s  }
}
`, &hosts)
	s.reachNodes(t, bed)
	s.left = func() (left string) {
		services, err := bed.Nodes[0].Client().ServiceList(context.WithoutCancel(t.Context()),
			dockerswarm.ServiceListOptions{
				Filters: filters.NewArgs(filters.Arg("label", "trainyard.cluster=lab")),
			})
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range services {
			left += service.Spec.Name + "\n"
		}
		return left
	}
	return s
}

// members returns the attributes of a module that determine what its members run from on this site, with more mounts.
func (s *site) members(mounts ...string) string {
	attributes := fmt.Sprintf("  python = %q\n", s.python)
	if s.image != "" {
		attributes += fmt.Sprintf("  image  = %q\n", s.image)
		mounts = append(mounts, s.mounts)
	}
	if len(mounts) > 0 {
		attributes += fmt.Sprintf("  mounts = [%s]\n", strings.Join(mounts, ", "))
	}
	return attributes
}

// expectNothing fails unless nothing is left of the cluster.
func (s *site) expectNothing(t *testing.T) {
	t.Helper()
	var left string
	defer func() {
		if t.Failed() {
			t.Logf("there is still:\n%s", left)
		}
	}()
	acctest.Eventually(t, "nothing of the cluster to be left", func() bool {
		left = s.left()
		return left == ""
	})
}

// expectOnAll fails unless each machine has a member, according to a module's output of placements.
func (s *site) expectOnAll(w *acctest.Workspace, output string) {
	w.Helper()
	var placements map[string]string
	if err := json.Unmarshal([]byte(w.Must("output", "-json", output)), &placements); err != nil {
		w.Fatal(err)
	}
	for _, host := range s.hosts {
		used := false
		for _, placed := range placements {
			used = used || strings.HasPrefix(placed, host)
		}
		if !used {
			w.Errorf("%s has no member: they are on %v", host, placements)
		}
	}
}
