//go:build linux

package swarm_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// containerOn returns the ID of a service's container on a node.
func (l *swarmLab) containerOn(node *testbed.Node, service string) string {
	l.Helper()
	var id string
	acctest.Eventually(l, "a container of "+service, func() bool {
		found, err := node.Client().ContainerList(l.Context(), container.ListOptions{
			Filters: filters.NewArgs(filters.Arg("label", "com.docker.swarm.service.name="+service)),
		})
		l.must(err)
		if len(found) > 0 {
			id = found[0].ID
		}
		return len(found) > 0
	})
	return id
}

// killController kills the cluster's controller, and returns the time.
func (l *swarmLab) killController(manager *testbed.Node) time.Time {
	l.Helper()
	host := l.hostOfController(manager)
	l.must(host.Client().ContainerKill(l.Context(), l.containerOn(host, "trainyard-"+l.name+"-controller"), "KILL"))
	return time.Now()
}

// killAndHold kills a service's container on a node, and makes its replacement hang until letGo is called.
func (l *swarmLab) killAndHold(node *testbed.Node, service string) (letGo func()) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	starts, failed := node.Client().Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)), filters.Arg("event", string(events.ActionStart)),
		filters.Arg("label", "com.docker.swarm.service.name="+service),
	)})
	l.must(node.Client().ContainerKill(ctx, l.containerOn(node, service), "KILL"))
	held := make(chan string, 1)
	go func() {
		defer close(held)
		select {
		case start := <-starts:
			// A pause uses the freezer, which gives up on a busy machine.
			if err := node.Client().ContainerKill(l.Context(), start.Actor.ID, "STOP"); err != nil {
				l.Errorf("what takes the place of %s could not be held: %v", service, err)
				return
			}
			held <- start.Actor.ID
		case err := <-failed:
			if ctx.Err() == nil {
				l.Errorf("what takes the place of %s can't be waited for: %v", service, err)
			}
		}
	}()
	return func() {
		cancel()
		for id := range held {
			l.must(node.Client().ContainerKill(l.Context(), id, "CONT"))
		}
	}
}

// awaitAtLeast waits for a worker count of at least this in a group of the cluster: an intermediate count may pass
// unseen.
func (l *swarmLab) awaitAtLeast(group string, count int) {
	l.Helper()
	e := l.engine()
	ctx := acctest.Bounded(l)
	for {
		document, err := engine.Get[domain.GroupDocument](ctx, e, group)
		if err == nil && document.Counts["worker"] >= count {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			l.Fatalf("waited for a count of %d or more in vain: it is %v (%v)", count, document.Counts, err)
		}
	}
}

// history returns the recorded decisions of a policy of the cluster.
func (l *swarmLab) history(group string) []autoscale.Entry {
	l.Helper()
	return slices.DeleteFunc(acceptance.Recorded(l.T, l.engine()),
		func(e autoscale.Entry) bool { return e.Policy != group+"/worker" })
}

// A group follows the load of its members as measured by their agents, and keeps a risk by the data of a Prometheus in
// the cluster. Meanwhile the controller is killed, a node crashes, Prometheus is killed, and the controller again:
// members are added whatever is missing, and removed only when everything is known; other members are not affected.
func TestAccSwarmScalingFollowsLoad(t *testing.T) {
	acceptance.Test(t)
	acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, "monitoring"))
	bed := ownBed(t, testbed.Options{Nodes: 3, Managers: 3, Heartbeat: slowHeartbeat})
	acctest.LoadPrometheus(t, bed, prometheusImage)
	l := newSwarmLab(t, bed, "busy")
	w := newSwarmWorkspace(l)
	acceptance.WithModules(w.Workspace)
	load := acceptance.NewLoad(t)
	manager, watched, victim := bed.Nodes[0], bed.Nodes[1], bed.Nodes[2]
	prometheus := fmt.Sprintf(`
module "monitoring" {
  source          = "./modules/monitoring"
  cluster         = trainyard_cluster.lab
  image           = %q
  retention       = "1h"
  scrape_interval = "1s"
  placement       = { hosts = [%q] }
}`, prometheusImage, watched.Name)
	job := l.group(fmt.Sprintf(`
  image  = %[1]q
  args   = ["hold:%[2]s/load"]
  mounts = [{ source = %[2]q, target = %[2]q }]
  roles  = { worker = { on_scale = "none" } }`, memberImage, load.Folder()))
	pinned := l.named("pinned", "pinned", fmt.Sprintf(`
  image = %q
  args  = ["wait"]
  roles = { worker = { on_scale = "none", placement = { hosts = [%q] } } }`, memberImage, victim.Name))
	sum := fmt.Sprintf("sum(avg_over_time(trainyard_member_memory_bytes[5s]) / 2^20 * on (id) group_left "+
		"max by (id) (last_over_time(trainyard_member_info{group=%q}[2m])))", l.name)
	// The group pinned to the node that crashes wants another member once the other group has about five.
	policies := func(most int) string {
		return acceptance.Follows("job", fmt.Sprintf(`min = 2
  max     = %d
  metrics = {
    mean = { source = { agent = { measure = "memory_mib" } }, window = "4s", algorithm = { target = { value = 40 } } }
    sum  = { source = { prometheus = { url = module.monitoring.endpoint, query = %q } }, algorithm = { risk = { percent = 10, capacity = 100, per = "total" } } }
  }
  scale_out = { max_step = 1 }
  scale_in  = { stabilisation_window = "10s" }`, most, sum)) + acceptance.Follows("pinned", fmt.Sprintf(`min = 1
  max     = 2
  metrics = { sum = { source = { prometheus = { url = module.monitoring.endpoint, query = %q } }, algorithm = { target = { value = 1, per = "total" } } } }
  schedules = { office = { start = "0 8 * * MON-FRI", end = "0 18 * * MON-FRI", time_zone = "Europe/Warsaw", count = 1 } }
  scale_in  = { stabilisation_window = "10s" }`, "("+sum+" > bool 450) + 1"))
	}
	configure := func(most int) { w.configure(l.wholeBed(3), prometheus, job, pinned, policies(most)) }
	t.Cleanup(func() {
		for _, group := range []string{l.name, "pinned"} {
			acceptance.Explain(t, l.program, group+"/worker", "--engine", "swarm", "--endpoint", manager.Host(),
				"--cluster", l.name)
		}
	})
	configure(6)
	w.Must("get")
	w.Must("apply", "-auto-approve")
	before := l.await(manager, "two members to run", runsOn(2))
	w.ExpectNoChange("without load")
	started := map[string]time.Time{}
	for _, o := range before.Observed {
		if o.Host != victim.Name {
			started[o.Name] = *o.StartedAt
		}
	}

	if len(started) == 0 {
		t.Fatalf("no member runs on another node than %s: %+v", victim.Name, before.Observed)
	}

	up := load.Set(100)
	l.awaitAtLeast(l.name, 3)
	l.killController(manager)
	l.awaitAtLeast(l.name, 4)
	l.must(victim.Crash())
	crashed := time.Now()
	l.await(manager, "six members to run without "+victim.Name, runsOn(6, victim.Name))
	t.Logf("six members run %s after the load rose, and %s after %s died", time.Since(up).Round(time.Second),
		time.Since(crashed).Round(time.Second), victim.Name)
	w.ExpectNoChange("with a node down")
	held := func(e autoscale.Entry) bool {
		return e.From == 1 && strings.Contains(e.Why()+e.OutcomeWhy, "host "+victim.Name+" is down")
	}
	acctest.Eventually(t, "the history to say that a group is held",
		func() bool { return slices.ContainsFunc(l.history("pinned"), held) })
	ctx := t.Context()
	l.must(victim.Restart(ctx))
	l.must(bed.Await(ctx, victim, dockerswarm.NodeStateReady))
	l.awaitAtLeast("pinned", 2)

	// A Prometheus that is killed, and hangs after its restart, does not prevent scaling out.
	letGo := l.killAndHold(watched, domain.MemberName("monitoring", "prometheus", 0))
	configure(7)
	w.Must("apply", "-auto-approve")
	l.await(manager, "seven members to run", runsOn(7))
	down := load.Set(0)
	killed := l.killController(manager)
	blocked := func(e autoscale.Entry) bool {
		return e.From == 7 && e.To == 7 && e.Until.After(killed) &&
			strings.Contains(e.Why(), "sum is missing, so the role is not scaled in")
	}
	acctest.Eventually(t, "the next controller to say that nothing is scaled in",
		func() bool { return slices.ContainsFunc(l.history(l.name), blocked) })
	l.awaitAtLeast(l.name, 7)
	letGo()
	back := time.Now()
	after := l.await(manager, "two members to run again", runsOn(2))
	t.Logf("two members run %s after the load fell, and %s after Prometheus was back",
		time.Since(down).Round(time.Second), time.Since(back).Round(time.Second))
	w.ExpectNoChange("without load again")

	for _, o := range after.Observed {
		if then, known := started[o.Name]; known && !o.StartedAt.Equal(then) {
			t.Errorf("%s runs since %s, and did since %s", o.Name, o.StartedAt, then)
		}
	}
	last := func(e autoscale.Entry) bool { return e.Scaled() && e.To == 2 && e.From > 2 }
	acctest.Eventually(t, "the last change in the history",
		func() bool { return slices.ContainsFunc(l.history(l.name), last) })
	expectUpAndDown(t, l.history(l.name), 1, 7, 2)
	risked := func(what string, is func(e autoscale.Entry, count int) bool) {
		if !slices.ContainsFunc(l.history(l.name), func(e autoscale.Entry) bool {
			i := slices.IndexFunc(e.Metrics,
				func(m autoscale.EntryMetric) bool { return m.Name == "sum" && m.Count != nil })
			return i >= 0 && is(e, *e.Metrics[i].Count)
		}) {
			t.Errorf("the risk has never asked for %s", what)
		}
	}
	risked("what the load takes", func(e autoscale.Entry, count int) bool { return e.From == 6 && count >= 4 })
	risked("fewer", func(e autoscale.Entry, count int) bool {
		return e.Scaled() && count <= e.To && e.To < e.From && strings.Contains(e.Why(), "; too few for ")
	})
	decided := func(first func(e autoscale.Entry) bool) time.Time {
		entries := l.history(l.name)
		return entries[slices.IndexFunc(entries, first)].At
	}
	t.Logf("from the load to the decision: %s up, and %s after Prometheus was back down",
		decided(acceptance.Outcomes(autoscale.OutcomeDone, 2, 3, "")).Sub(up).Round(time.Millisecond),
		decided(func(e autoscale.Entry) bool { return e.Scaled() && e.To < e.From }).Sub(back).Round(time.Millisecond))
}

// expectUpAndDown fails unless a history goes from the first count up to the largest, and from there down to the last,
// without a step back, with each change recorded once. Later changes are ignored, since members that start and end are
// a load as well.
func expectUpAndDown(t *testing.T, entries []autoscale.Entry, first, largest, last int) {
	t.Helper()
	counts := []int{first}
	for _, e := range entries {
		if !e.Scaled() {
			continue
		}
		if e.From != counts[len(counts)-1] {
			t.Errorf("the history has a change from %d to %d after the counts %v", e.From, e.To, counts)
		}
		counts = append(counts, e.To)
		if e.To == last && slices.Contains(counts, largest) {
			break
		}
	}
	top := slices.Index(counts, slices.Max(counts))
	falling := slices.Clone(counts[top:])
	slices.Reverse(falling)
	if !slices.IsSorted(counts[:top]) || !slices.IsSorted(falling) || counts[top] != largest ||
		counts[len(counts)-1] != last {
		t.Errorf("the counts were %v; up to %d and down to %d is wanted", counts, largest, last)
	}
}
