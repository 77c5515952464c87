//go:build linux

package swarm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// The contents of secrets, one of them with a join token, reach the members and appear nowhere else. New content needs
// a new version.
func TestAccSwarmSecrets(t *testing.T) {
	acceptance.Test(t)
	acceptance.Requires(t, acceptance.WriteOnlyAttributes)
	l := newSwarmLab(t, sharedBed(t), "secrets")
	w := newSwarmWorkspace(l)
	is, err := l.bed.Nodes[0].Client().SwarmInspect(t.Context())
	l.must(err)
	// The values don't look like secrets, so nothing can hide them by guessing.
	first, second := credentials{
		"token": "the-first-of-two", "joining": is.JoinTokens.Worker,
	}, credentials{"token": "the-second-of-two", "joining": is.JoinTokens.Worker}
	config := func(c credentials, version string) {
		declarations := c.set(w)
		w.configure(declarations, l.cluster(""), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["file:/run/secrets/token", "file:/keys/join", "file:/etc/setting", "wait"]
  timeouts = { create = "10m", update = "10m" }
  roles    = { worker = { replicas = 1 } }
  container = {
    configs = { setting = { content = "rate=0.1", target = "/etc/setting" } }
    secrets = {
      token = { value = var.token, version = %q }
      join  = { value = "${ephemeral.trainyard_join_token.worker.token} ${ephemeral.trainyard_join_token.worker.addresses[0]}", version = "1", target = "/keys/join", mode = "0440" }
    }
  }`, memberImage, version)), `
ephemeral "trainyard_join_token" "worker" {
  cluster = trainyard_cluster.lab
}`)
	}
	reads := func(want ...string) {
		t.Helper()
		acctest.Eventually(t, fmt.Sprintf("the member to write %q", want),
			func() bool { return slices.Equal(want, l.logs(l.member("worker", 0))) })
	}
	joining := fmt.Sprintf("/keys/join 440 %q", is.JoinTokens.Worker+" "+l.bed.Nodes[0].Address.String()+":2377")
	const setting = `/etc/setting 444 "rate=0.1"`

	config(first, "1")
	first.hidden(w, "plan", "-out="+savedPlan)
	first.hidden(w, "apply", savedPlan)
	reads(`/run/secrets/token 400 "the-first-of-two"`, joining, setting)
	l.seen = l.tasks()

	config(second, "1")
	second.hidden(w, "plan", "-detailed-exitcode")
	config(second, "2")
	second.hidden(w, "plan", "-out="+savedPlan)
	second.hidden(w, "apply", savedPlan)
	l.must(l.changes("~" + l.member("worker", 0))(nil))
	reads(`/run/secrets/token 400 "the-second-of-two"`, joining, setting)
	second.hidden(w, "plan", "-detailed-exitcode")
	second.hidden(w, "destroy", "-auto-approve")
}

// logs returns the lines from a member's current instance.
func (l *swarmLab) logs(member string) []string {
	l.Helper()
	log, err := l.engine().Logs(l.Context(), member, engine.LogOptions{})
	l.must(err)
	if last := len(log) - 3; last > 0 {
		return log[last:]
	}
	return log
}

// kill kills a member's container on a node.
func (l *swarmLab) kill(node, member string) {
	l.Helper()
	i := slices.IndexFunc(l.bed.Nodes, func(n *testbed.Node) bool { return n.Name == node })
	docker := l.bed.Nodes[i].Client()
	containers, err := docker.ContainerList(l.Context(),
		container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "trainyard.member="+member))})
	l.must(err)
	for _, c := range containers {
		l.must(docker.ContainerKill(l.Context(), c.ID, "KILL"))
	}
}

// The data sources show what changes by itself.
func TestAccSwarmDataSources(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, sharedBed(t), "seen")
	job := l.config(l.formed(map[string]string{"node1": "", "node2": "", "node3": ""}), l.group(fmt.Sprintf(`
  framework = "tensorflow_v1"
  image     = %q
  roles = {
    ps     = { replicas = 1, args = ["wait"] }
    worker = { replicas = 1, args = ["print:one", "print:two", "print:three", "wait"], placement = { hosts = ["node2"] } }
  }
  timeouts = { create = "10m" }`, memberImage)))
	sources := `
data "trainyard_cluster" "lab" {
  name       = trainyard_cluster.lab.name
  engine     = "swarm"
  endpoint   = trainyard_cluster.lab.endpoint
  depends_on = [trainyard_group.job]
}
data "trainyard_group" "job" {
  cluster    = trainyard_cluster.lab
  name       = "seen"
  depends_on = [trainyard_group.job]
}
data "trainyard_logs" "tail" {
  cluster    = trainyard_cluster.lab
  member     = "seen-worker-0"
  tail       = 2
  depends_on = [trainyard_group.job]
}
data "trainyard_utilisation" "now" {
  cluster    = trainyard_cluster.lab
  depends_on = [trainyard_group.job]
}`
	known := func(source string, path tfjsonpath.Path, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.trainyard_"+source, path, check)
	}
	exactly := knownvalue.StringExact
	positive := knownvalue.Float64Func(func(v float64) error {
		if v <= 0 {
			return fmt.Errorf("%v is not above 0", v)
		}
		return nil
	})
	memory := l.node("node2").Description.Resources.MemoryBytes >> 20
	member := func(name string) tfjsonpath.Path { return tfjsonpath.New("members").AtMapKey(name) }
	l.test(resource.TestStep{Config: job}, resource.TestStep{
		PreConfig: func() {
			acctest.Eventually(l, "the first samples", func() bool {
				usage, err := l.engine().Usage(t.Context(), time.Second)
				l.must(err)
				return usage.Hosts["node2"].MemoryMiB.Last != nil && usage.Members["seen-ps-0"].MemoryMiB.Last != nil &&
					usage.Members["seen-worker-0"].MemoryMiB.Last != nil
			})
		},
		Config: job + sources,
		ConfigStateChecks: []statecheck.StateCheck{
			known("cluster.lab", tfjsonpath.New("groups"), knownvalue.ListExact([]knownvalue.Check{exactly("seen")})),
			known("cluster.lab", tfjsonpath.New("hosts"), knownvalue.MapSizeExact(3)),
			known("group.job", tfjsonpath.New("phase"), exactly("running")),
			known("group.job", member("seen-ps-0").AtMapKey("state"), exactly("running")),
			known("group.job", member("seen-worker-0").AtMapKey("state"), exactly("running")),
			known("group.job", member("seen-worker-0").AtMapKey("host"), exactly("node2")),
			known("logs.tail", tfjsonpath.New("lines"),
				knownvalue.ListExact([]knownvalue.Check{exactly("two"), exactly("three")})),
			known("utilisation.now", tfjsonpath.New("hosts").AtMapKey("node2").AtMapKey("memory_mib"),
				knownvalue.Int64Exact(memory)),
			known("utilisation.now", tfjsonpath.New("hosts").AtMapKey("node2").AtMapKey("memory_used_mib"), positive),
			known("utilisation.now", member("seen-ps-0").AtMapKey("memory_used_mib"), positive),
			known("utilisation.now", member("seen-worker-0").AtMapKey("memory_used_mib"), positive),
		},
	}, resource.TestStep{
		// What they show has changed since, without a diff.
		PreConfig: func() {
			before := l.tasks()["seen-worker-0"]
			l.kill("node2", "seen-worker-0")
			acctest.Eventually(l, "seen-worker-0 to be restarted", func() bool {
				now := l.tasks()["seen-worker-0"]
				return now != "" && now != before
			})
		},
		Config:           job + sources,
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
		ConfigStateChecks: []statecheck.StateCheck{
			known("group.job", member("seen-worker-0").AtMapKey("restarts"), knownvalue.Int64Exact(1)),
		},
	})
}
