//go:build linux

package systems_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
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
	// hostOf returns the name of the machine that runs a member; log returns what a member has printed, anywhere.
	hostOf func(member string) (string, error)
	log    func(member string) (string, error)
	// fetch returns the content at a port that is published on a node of a Swarm.
	fetch func(node string, port int, path string) ([]byte, error)
	// killController kills the controller of the cluster.
	killController func() error
	// killHost cuts the power of a machine, given its index; bootHost boots it again, and waits until it takes part.
	// The first machine is the manager.
	killHost, bootHost func(int) error
	// lose removes the last of the members of an interchangeable role, such as "spark-worker", of which there are this
	// many, behind Terraform's back.
	lose func(role string, count int) error
	// left describes what is left of the cluster, by machine.
	left func() string
	// removeData removes what a destroy keeps on bare hosts, the members' working directories with data in them, by the
	// prefix of the members' names. It fails if a host has none.
	removeData func(members string)
	// secrets are what must be seen nowhere, by what they are: see expectHidden.
	secrets map[string]string
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
	key, err := os.ReadFile(bed.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	// The fourth line of the encoded key holds its secret part.
	s := &site{python: e.Python, secrets: map[string]string{"SSH key": strings.Split(string(key), "\n")[4]}}
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
	s.left = func() string { return leftOnHosts(t, bed, "lab") }
	s.removeData = func(members string) {
		for _, host := range bed.Hosts {
			command := "cd /var/lib/trainyard/clusters && rm -r lab/work/" + members + "* && rmdir -p lab/work"
			if output, err := host.Run(t.Context(), command); err != nil {
				t.Fatalf("%s: %v\n%s", host.Name, err, output)
			}
		}
	}
	return s
}

// onSwarm returns a Swarm of this many nodes. Members are containers of a small image that see this machine's system
// and the environment, read-only.
func onSwarm(t *testing.T, e pythonenv.Environment, count int) *site {
	t.Helper()
	bed := testbed.New(t, testbed.Options{Nodes: count, Managers: 1})
	formed, err := bed.Nodes[0].Client().SwarmInspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{python: e.Python, image: "trainyard/base:1", mounts: e.Mounts(), secrets: map[string]string{
		"token of workers": formed.JoinTokens.Worker, "token of managers": formed.JoinTokens.Manager,
	}}
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
	s.left = func() string { return strings.Join(leftOnNodes(t, bed, "lab"), "\n") }
	s.removeData = func(string) {} // it is in volumes
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

// leftOnHosts describes what is left of a cluster on bare hosts, including results.
func leftOnHosts(t *testing.T, bed *testbed.Hosts, cluster string) (left string) {
	t.Helper()
	for _, host := range bed.Hosts {
		found, err := host.Run(context.WithoutCancel(t.Context()),
			acceptance.LeftOnHost(cluster)+"\nfind "+resultsOnHosts+" -type f 2>/dev/null; :")
		if err != nil {
			t.Fatal(err)
		}
		if found = strings.TrimSpace(found); found != "" {
			left += host.Name + ": " + found + "\n"
		}
	}
	return left
}

// leftOnNodes lists what is left of clusters on a Swarm: services, configs, secrets, networks, labels of nodes, and, on
// all nodes, containers and volumes. No test here has a volume that outlives its group.
func leftOnNodes(t *testing.T, bed *testbed.Bed, clusters ...string) (left []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	note := func(where string, found []string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range found {
			left = append(left, where+what)
		}
	}
	for _, cluster := range clusters {
		label := domain.LabelCluster + "=" + cluster
		found, err := bed.Labelled(ctx, label)
		note("", found, err)
		for _, node := range bed.Nodes {
			found, err := node.Labelled(ctx, label)
			note(node.Name+": ", found, err)
		}
	}
	nodes, err := bed.Nodes[0].Client().NodeList(ctx, dockerswarm.NodeListOptions{})
	note("", nil, err)
	for _, node := range nodes {
		for label := range node.Spec.Labels {
			if strings.HasPrefix(label, domain.LabelPrefix) {
				left = append(left, fmt.Sprintf("label %s of node %s", label, node.Description.Hostname))
			}
		}
	}
	return left
}

// loseHost cuts the power of a machine in the middle of what its cluster does. A bare host boots again, and so do the
// members that it ran. A Swarm first moves these members to others.
func (s *site) loseHost(t *testing.T, i int, members ...string) {
	t.Helper()
	s.restorePower(t, i, s.cutPower(t, i, members...))
}

// cutPower cuts the power of a machine, and returns those of the members that it ran.
func (s *site) cutPower(t *testing.T, i int, members ...string) (lost []string) {
	t.Helper()
	for _, member := range members {
		if host, err := s.hostOf(member); err == nil && host == s.hosts[i] {
			lost = append(lost, member)
		}
	}
	if len(lost) == 0 {
		t.Fatalf("%s runs none of %q, so it can't lose its power in the middle of what they do", s.hosts[i], members)
	}
	if err := s.killHost(i); err != nil {
		t.Fatal(err)
	}
	return lost
}

// restorePower boots a machine again that has lost its power with these members. On a Swarm, it first waits until they
// run elsewhere.
func (s *site) restorePower(t *testing.T, i int, lost []string) {
	t.Helper()
	begun := time.Now()
	if s.image != "" {
		acctest.Eventually(t, "the members of "+s.hosts[i]+" to run elsewhere", func() bool {
			for _, member := range lost {
				if _, err := s.hostOf(member); err != nil {
					return false
				}
			}
			return true
		})
	}
	t.Logf("%s has lost its power, with %v; %.1f s later it boots", s.hosts[i], lost, time.Since(begun).Seconds())
	if err := s.bootHost(i); err != nil {
		t.Fatal(err)
	}
}

// expectNothing fails unless nothing is left of the cluster.
func (s *site) expectNothing(t *testing.T) {
	t.Helper()
	var left string
	defer func() {
		if left != "" {
			t.Logf("there is still:\n%s", left)
		}
	}()
	acctest.Eventually(t, "nothing of the cluster to be left", func() bool {
		left = s.left()
		return left == ""
	})
}

// awaitOnAll waits until each machine runs one of these members.
func (s *site) awaitOnAll(t *testing.T, members ...string) {
	t.Helper()
	acctest.Eventually(t, fmt.Sprintf("each of %v to run one of %q", s.hosts, members), func() bool {
		used := map[string]bool{}
		for _, member := range members {
			if host, err := s.hostOf(member); err == nil {
				used[host] = true
			}
		}
		return len(used) == len(s.hosts)
	})
}
