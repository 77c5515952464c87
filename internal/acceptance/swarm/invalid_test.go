//go:build linux

package swarm_test

import (
	"fmt"
	"strings"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// What is invalid fails at plan time, with the attribute, its value and what is possible.
func TestAccSwarmInvalid(t *testing.T) {
	acceptance.Test(t)
	bed := sharedBed(t)
	l := newSwarmLab(t, bed, "invalid")
	l.strangers("invalid-taken-0", func(s *dockerswarm.ServiceSpec) {
		s.TaskTemplate.Resources = &dockerswarm.ResourceRequirements{
			Reservations: &dockerswarm.Resources{NanoCPUs: 1e9},
		}
		s.TaskTemplate.Placement = &dockerswarm.Placement{Constraints: []string{"node.id==" + l.node("node2").ID}}
	})
	id := l.service("invalid-taken-0").ID
	acctest.Eventually(l, "invalid-taken-0 to run", func() bool {
		tasks := l.tasksOf(id)
		return len(tasks) == 1 && tasks[0].Status.State == dockerswarm.TaskStateRunning
	})
	endpoint := bed.Nodes[0].Host()
	plan := func(config string, says ...string) resource.TestStep {
		return resource.TestStep{PlanOnly: true, Config: l.config(config), ExpectError: acceptance.Says(says...)}
	}
	cluster := func(attributes string, says ...string) resource.TestStep {
		return plan(
			"resource \"trainyard_cluster\" \"lab\" {\n  name   = \"invalid\"\n  engine = \"swarm\"\n  "+attributes+
				"\n}",
			says...,
		)
	}
	subnet := func(subnet string, says ...string) resource.TestStep {
		return cluster(fmt.Sprintf("endpoint = %q\n  network = { subnet = %q }", endpoint, subnet), says...)
	}
	group := func(attributes string, says ...string) resource.TestStep {
		return plan(l.cluster("")+l.group("timeouts = {}\n  args = [\"wait\"]\n  "+attributes), says...)
	}
	role := func(attributes string, says ...string) resource.TestStep {
		return group("image = \""+memberImage+"\"\n  roles = { worker = { "+attributes+" } }", says...)
	}
	l.test(
		cluster(`endpoint = "http://node1"`, `"http://node1"`, `unix://`, `tcp://`, `ssh://`),
		cluster(`endpoint = "unix:///nowhere/docker.sock"`, `unix:///nowhere/docker.sock`,
			`Check that the Docker Engine runs`),
		cluster(fmt.Sprintf("endpoint = %q", bed.Nodes[1].Host()), bed.Nodes[1].Host(),
			`the Engine is not a Swarm manager; set the endpoint to that of a manager`),
		cluster(fmt.Sprintf("endpoint = %q\n  hosts = { nowhere = {} }", endpoint),
			`hosts["nowhere"]: no node of the Swarm is named "nowhere"; there are node1, node2, node3`),
		cluster(fmt.Sprintf("endpoint = %q\n  hosts = { node1 = { role = \"leader\" } }", endpoint),
			`hosts["node1"].role: host "node1" has the unknown role "leader"; use one of ["manager" "worker"]`),
		cluster(fmt.Sprintf("endpoint = %q\n  hosts = { node1 = { capacity = { cpus = 1000 } } }", endpoint),
			`hosts["node1"].capacity.cpus: host "node1" has`, `CPUs, but 1000 are declared`),
		subnet("10.300.0.0/20", `network.subnet: "10.300.0.0/20" is not a valid CIDR range, such as "10.20.0.0/20"`),
		subnet("10.20.0.1/20",
			`network.subnet: "10.20.0.1/20" is an address within a range; use the range itself, "10.20.0.0/20"`),
		subnet("10.20.0.0/30", `network.subnet: 10.20.0.0/30 has 4 addresses, which leaves none for members`,
			`a /20 has room for 4086 members`),
		subnet("10.200.0.0/16", `network.subnet: 10.200.0.0/16 overlaps with the address of host node1`,
			`omit it to have a free one chosen`),
		subnet("172.17.0.0/16", `network.subnet: 172.17.0.0/16 overlaps with network`, `172.17.0.0/16`),
		group(`roles = { worker = {} }`, `roles["worker"]`, `image`),
		group(`image = "Trainer:1"`+"\n"+`roles = { worker = {} }`, `image`, `"Trainer:1"`),
		plan(strings.Replace(l.cluster(""), l.subnet, "10.20.0.0/28",
			1)+l.group("image = \""+memberImage+"\"\n  roles = { worker = { replicas = 8 } }"),
			`addresses for 6 members`),
		role(`replicas = 1, placement = { hosts = ["node9"] }`, `roles["worker"].placement.hosts`, `"node9"`,
			`node1, node2, node3`),
		role(`replicas = 1, resources = { cpus = 1000 }`,
			`roles["worker"].resources.cpus: each member of role "worker" requests 1000 CPUs`, `host node1:`),
		role(fmt.Sprintf(`replicas = 2, placement = { hosts = ["node2"] }, resources = { cpus = %d }`,
			l.node("node2").Description.Resources.NanoCPUs/1e9),
			`roles["worker"].resources.cpus: role "worker" has 2 members of`, `only 0 of them fit`,
			`1 reserved by other services`),
		plan(l.cluster("")+l.group("image = \""+memberImage+"\"\n  roles = { taken = {} }"),
			`roles["taken"]: "invalid-taken-0" is the name of a service that is not Trainyard's: remove that, or rename the group or the role`),
	)
}
