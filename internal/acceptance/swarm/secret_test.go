//go:build linux

package swarm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
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
	log := l.wholeLog(member)
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
	w := newSwarmWorkspace(l)
	cluster := l.formed(map[string]string{"node1": "", "node2": "", "node3": ""})
	job := l.group(fmt.Sprintf(`
  framework = "tensorflow_v1"
  image     = %q
  roles = {
    ps     = { replicas = 1, args = ["wait"] }
    worker = { replicas = 1, args = ["print:one", "print:two", "print:three", "wait"], placement = { hosts = ["node2"] } }
  }
  timeouts = { create = "10m" }`, memberImage))
	w.configure(cluster, job)
	w.Must("apply", "-auto-approve")
	acctest.Eventually(t, "all lines of a member",
		func() bool { return slices.Equal(l.logs("seen-worker-0"), []string{"one", "two", "three"}) })
	w.configure(cluster, job, `
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
}`)
	w.Must("apply", "-auto-approve")
	refresh := func() { w.Must("apply", "-refresh-only", "-auto-approve") }

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
	host := tfjsonpath.New("hosts").AtMapKey("node2")
	l.must(w.shows(
		known("cluster.lab", tfjsonpath.New("groups"), knownvalue.ListExact([]knownvalue.Check{exactly("seen")})),
		known("cluster.lab", tfjsonpath.New("hosts"), knownvalue.MapSizeExact(3)),
		known("group.job", tfjsonpath.New("phase"), exactly("running")),
		known("group.job", member("seen-ps-0").AtMapKey("state"), exactly("running")),
		known("group.job", member("seen-worker-0").AtMapKey("state"), exactly("running")),
		known("group.job", member("seen-worker-0").AtMapKey("host"), exactly("node2")),
		known("logs.tail", tfjsonpath.New("lines"),
			knownvalue.ListExact([]knownvalue.Check{exactly("two"), exactly("three")})),
		known("utilisation.now", host.AtMapKey("memory_mib"), knownvalue.Int64Exact(memory)),
	))
	// On a busy machine, an agent may answer too late for a single read.
	acctest.Eventually(t, "what is used to be known", func() bool {
		err := w.shows(
			known("utilisation.now", host.AtMapKey("memory_used_mib"), positive),
			known("utilisation.now", member("seen-ps-0").AtMapKey("memory_used_mib"), positive),
			known("utilisation.now", member("seen-worker-0").AtMapKey("memory_used_mib"), positive),
		)
		if err != nil {
			t.Log(err)
			refresh()
		}
		return err == nil
	})

	// What they show has changed since, without a diff.
	before := l.tasks()["seen-worker-0"]
	l.kill("node2", "seen-worker-0")
	acctest.Eventually(t, "seen-worker-0 to be restarted", func() bool {
		now := l.tasks()["seen-worker-0"]
		return now != "" && now != before
	})
	w.ExpectNoChange("with a member that was restarted")
	refresh()
	l.must(w.shows(known("group.job", member("seen-worker-0").AtMapKey("restarts"), knownvalue.Int64Exact(1))))
}

// shows returns how the state differs from the checks.
func (w *swarmWorkspace) shows(checks ...statecheck.StateCheck) error {
	w.swarmLab.Helper()
	var state tfjson.State
	state.UseJSONNumber(true)
	w.must(json.Unmarshal([]byte(w.Must("show", "-json")), &state))
	var errs []error
	for _, check := range checks {
		var response statecheck.CheckStateResponse
		check.CheckState(w.Context(), statecheck.CheckStateRequest{State: &state}, &response)
		errs = append(errs, response.Error)
	}
	return errors.Join(errs...)
}
