//go:build linux

package swarm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// trainerImage is the image of the quickstart's training program.
const trainerImage = "trainyard/trainer:1"

// wholeBed returns the configuration of a cluster of all nodes of the bed, of which the first are managers.
func (l *swarmLab) wholeBed(managers int) string {
	hosts := map[string]string{}
	for i, node := range l.bed.Nodes {
		hosts[node.Name] = `role = "worker"`
		if i < managers {
			hosts[node.Name] = `role = "manager"`
		}
	}
	return l.formed(hosts)
}

// reconcilerAt returns a reconciler of the cluster that uses this node and bypasses the provider.
func (l *swarmLab) reconcilerAt(node *testbed.Node) reconcile.Reconciler {
	l.Helper()
	ref := domain.ClusterRef{Engine: swarm.Name, Name: l.name, Endpoint: node.Host()}
	e, err := swarm.Open(ref, engine.Settings{},
		swarm.Program{File: acctest.Build(l, acctest.Provider), Version: "dev"})
	l.must(err)
	return reconcile.Reconciler{Engine: e}
}

// await waits until the group satisfies a condition, as seen from a node.
func (l *swarmLab) await(node *testbed.Node, what string, holds func(group reconcile.Group) bool) reconcile.Group {
	l.Helper()
	ctx := acctest.Bounded(l)
	r := l.reconcilerAt(node)
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		group, err := r.Read(ctx, l.name)
		if err == nil && holds(group) {
			return group
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			l.Fatalf("waited for %s in vain; the group is %s (%s), its members are %+v (%v)", what,
				group.Progress.Phase, group.Progress.Reason, group.Observed, err)
		}
	}
}

// runsOn returns a condition that this many members run, none of them on the given hosts.
func runsOn(members int, except ...string) func(reconcile.Group) bool {
	return func(group reconcile.Group) bool {
		for _, o := range group.Observed {
			if o.State != domain.StateRunning || slices.Contains(except, o.Host) || o.HostTrouble != "" {
				return false
			}
		}
		return len(group.Observed) == members && group.Progress.Phase == domain.PhaseRunning
	}
}

// containers returns the member names of the group's containers on these nodes, with duplicates.
func (l *swarmLab) containers(nodes ...*testbed.Node) []string {
	l.Helper()
	return l.containersOf(l.name, nodes...)
}

// containersOf is containers for another group of the cluster.
func (l *swarmLab) containersOf(group string, nodes ...*testbed.Node) []string {
	l.Helper()
	var members []string
	for _, node := range nodes {
		found, err := node.Client().ContainerList(l.Context(), container.ListOptions{Filters: filters.NewArgs(
			filters.Arg("label", "trainyard.cluster="+l.name), filters.Arg("label", "trainyard.group="+group),
		)})
		l.must(err)
		for _, c := range found {
			members = append(members, c.Labels["trainyard.member"])
		}
	}
	slices.Sort(members)
	return members
}

// expectOnce waits until exactly one container runs for each member.
func (l *swarmLab) expectOnce(role string, members int) {
	l.Helper()
	var want []string
	for i := range members {
		want = append(want, l.member(role, i))
	}
	slices.Sort(want)
	var found []string
	l.Cleanup(func() {
		if l.Failed() {
			observed, err := l.reconcilerAt(l.bed.Nodes[0]).Engine.Observe(context.WithoutCancel(l.Context()), l.name)
			l.Logf("containers ran of %q, want %q; now the members are %+v (%v)", found, want, observed, err)
		}
	})
	acctest.Eventually(l, "one container for each member", func() bool {
		found = l.containers(l.bed.Nodes...)
		return slices.Equal(found, want)
	})
}

// hostOfController returns the node on which the controller runs.
func (l *swarmLab) hostOfController(by *testbed.Node) *testbed.Node {
	l.Helper()
	var host *testbed.Node
	acctest.EventuallyNoError(l, "the controller", func() error {
		tasks, err := by.Client().TaskList(l.Context(), dockerswarm.TaskListOptions{
			Filters: filters.NewArgs(filters.Arg("service", "trainyard-"+l.name+"-controller")),
		})
		if err != nil {
			return err // while the managers elect a leader
		}
		host = nil
		for _, task := range tasks {
			if task.DesiredState != dockerswarm.TaskStateRunning || task.Status.State != dockerswarm.TaskStateRunning {
				continue
			}
			node, _, err := by.Client().NodeInspectWithRaw(l.Context(), task.NodeID)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(l.bed.Nodes,
				func(n *testbed.Node) bool { return n.Name == node.Description.Hostname })
			host = l.bed.Nodes[i]
		}
		if host == nil {
			return fmt.Errorf("it runs nowhere: %+v", tasks)
		}
		return nil
	})
	return host
}

// background runs Terraform in the background. wait waits for its end, and returns its output.
func (w *swarmWorkspace) background(args ...string) (wait func() (string, error)) {
	w.swarmLab.Helper()
	ctx, cancel := context.WithCancel(acctest.Bounded(w.swarmLab))
	var output bytes.Buffer
	command := w.Command(ctx, nil, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Stdout, command.Stderr = &output, &output
	w.must(command.Start())
	return func() (string, error) {
		defer cancel()
		err := command.Wait()
		return output.String(), err
	}
}

// A worker node crashes during a training of 12 members: the others take over its members, under their names, and the
// job completes. With the node still down, the plan is empty.
func TestAccSwarmNodeDiesInTraining(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, three)
	acctest.LoadTrainer(t, bed, trainerImage)
	l := newSwarmLab(t, bed, "training")
	w := newSwarmWorkspace(l)
	// On a busy machine the last member starts long after the first one, which must not have ended by then.
	w.configure(l.wholeBed(1), l.group(fmt.Sprintf(`
  framework  = "tensorflow"
  image      = %q
  args       = ["-steps", "600", "-step-interval", "50ms", "-log-every", "10", "-connect-timeout", "10m"]
  roles      = { ps = { replicas = 2, port = 8000 }, worker = { replicas = 10, port = 9000 } }
  completion = { when = "all" }
  wait_for   = "completed"
  timeouts   = { create = "10m" }`, trainerImage)))
	wait := w.background("apply", "-auto-approve")
	defer func() { _, _ = wait() }()

	victim, manager := bed.Nodes[2], bed.Nodes[0]
	before := l.await(manager, "all members to run", runsOn(12))
	var stranded []string
	for _, o := range before.Observed {
		if o.Host == victim.Name {
			stranded = append(stranded, o.Name)
		}
	}
	if len(stranded) == 0 {
		t.Fatalf("no member is on %s: %+v", victim.Name, before.Observed)
	}
	r := l.reconcilerAt(manager)
	acctest.Eventually(t, "progress of the chief", func() bool {
		lines, err := r.Engine.Logs(t.Context(), l.member("worker", 0), engine.LogOptions{})
		return err == nil && strings.Contains(strings.Join(lines, "\n"), `"event":"progress"`)
	})
	l.must(victim.Crash())
	t.Logf("%s dies with %q", victim.Name, stranded)
	if output, err := wait(); err != nil {
		t.Fatalf("the apply: %v\n%s", err, output)
	}
	after := l.await(manager, "the rest to end",
		func(group reconcile.Group) bool { return group.Progress.Phase == domain.PhaseCompleted })
	for i, o := range after.Observed {
		if o.Name != before.Observed[i].Name || o.Address != before.Observed[i].Address {
			t.Errorf("member %s at %s has become %s at %s", before.Observed[i].Name, before.Observed[i].Address, o.Name,
				o.Address)
		}
		if o.Host == victim.Name && slices.Contains(stranded, o.Name) && o.Role == "worker" &&
			o.State != domain.StateCompleted {
			t.Errorf("member %s is %s on the dead node", o.Name, o.State)
		}
	}
	w.ExpectNoChange("with a node down")
}

// A worker node crashes while the update of a group waits for its completion: the members move, the job completes, and
// the apply succeeds, although its plan showed them on that node.
func TestAccSwarmNodeDiesInUpdate(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, three)
	l := newSwarmLab(t, bed, "rerun")
	w := newSwarmWorkspace(l)
	done := filepath.Join(t.TempDir(), "done")
	configure := func(data string) {
		w.configure(l.wholeBed(1), l.group(fmt.Sprintf(`
  image      = %q
  mounts     = [{ source = %[2]q, target = %[2]q }]
  roles      = { worker = { replicas = 6, args = ["until:%[3]s", "exit:0"] } }
  completion = { when = "all" }
  wait_for   = "completed"
  triggers   = { data = %[4]q }`, memberImage, filepath.Dir(done), done, data)))
	}
	configure("old")
	l.must(os.WriteFile(done, nil, 0o600))
	w.Must("apply", "-auto-approve")
	l.must(os.Remove(done))
	configure("new")
	wait := w.background("apply", "-auto-approve")
	defer func() { _, _ = wait() }()

	victim, manager := bed.Nodes[2], bed.Nodes[0]
	l.await(manager, "all members to run again", runsOn(6))
	l.must(victim.Crash())
	l.await(manager, "the members of "+victim.Name+" to run elsewhere", runsOn(6, victim.Name))
	l.must(os.WriteFile(done, nil, 0o600))
	output, err := wait()
	if err != nil {
		t.Fatalf("the apply: %v\n%s", err, output)
	}
	acceptance.ExpectSaid(t, output, "Group changed during its apply", fmt.Sprintf("not %q", victim.Name))
	w.ExpectNoChange("with a node down")
}

// A manager crashes with the controller on it: the Swarm starts the controller on another one, which moves the crashed
// node's members, and ends the rest when the group has completed.
func TestAccSwarmControllerDies(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 3, Managers: 3})
	l := newSwarmLab(t, bed, "orphaned")
	w := newSwarmWorkspace(l)
	done := filepath.Join(t.TempDir(), "done")
	w.configure(l.wholeBed(3), l.group(fmt.Sprintf(`
  image  = %q
  mounts = [{ source = %[2]q, target = %[2]q }]
  roles = {
    ps     = { replicas = 3, args = ["wait"] }
    worker = { replicas = 3, args = ["until:%[3]s", "exit:0"] }
  }
  completion = { when = "all", roles = ["worker"] }`, memberImage, filepath.Dir(done), done)))
	w.Must("apply", "-auto-approve")

	victim := l.hostOfController(bed.Nodes[0])
	survivor := bed.Nodes[(slices.Index(bed.Nodes, victim)+1)%len(bed.Nodes)]
	l.must(victim.Crash())
	l.await(survivor, "the members of "+victim.Name+" to run elsewhere", runsOn(6, victim.Name))
	if now := l.hostOfController(survivor); now == victim {
		t.Errorf("the controller is still said to be on %s", victim.Name)
	}
	l.must(os.WriteFile(done, nil, 0o600))
	l.await(survivor, "the group to complete, and its rest to end", func(group reconcile.Group) bool {
		return group.Progress.Phase == domain.PhaseCompleted &&
			!slices.ContainsFunc(group.Observed, func(o domain.Observed) bool { return !o.State.Ended() })
	})
	w.ExpectNoChange("with a manager down")
	ctx := t.Context()
	l.must(victim.Restart(ctx))
	l.must(bed.Await(ctx, victim, dockerswarm.NodeStateReady))
	acctest.Eventually(t, "the last container to end", func() bool { return len(l.containers(bed.Nodes...)) == 0 })
	w.ExpectNoChange("with the manager back")
}

// After a node is cut off from the network, and after a Docker Engine is killed, no member runs twice once they are
// back, and the plan is empty.
func TestAccSwarmNodeComesBack(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 3, Managers: 1, Heartbeat: slowHeartbeat})
	l := newSwarmLab(t, bed, "back")
	w := newSwarmWorkspace(l)
	w.configure(l.wholeBed(1), l.group(fmt.Sprintf(`
  image = %q
  args  = ["until:/the/end"] # a member that is stopped earlier has failed
  roles = { worker = { replicas = 6 } }`, memberImage)))
	w.Must("apply", "-auto-approve")
	l.expectOnce("worker", 6)
	ctx := t.Context()

	manager, lonely, killed := bed.Nodes[0], bed.Nodes[2], bed.Nodes[1]
	kept := l.containers(lonely)
	l.must(lonely.Cut())
	l.await(manager, "the members of "+lonely.Name+" to run elsewhere", runsOn(6, lonely.Name))
	if now := l.containers(lonely); len(now) == 0 || !slices.Equal(now, kept) {
		t.Errorf("on the node that was cut off %q run, before %q", now, kept)
	}
	w.ExpectNoChange("with a node cut off")
	l.must(lonely.Reconnect())
	l.must(bed.Await(ctx, lonely, dockerswarm.NodeStateReady))
	l.expectOnce("worker", 6)
	w.ExpectNoChange("with the node back")

	l.must(killed.Kill())
	l.must(killed.Restart(ctx))
	l.must(bed.Await(ctx, killed, dockerswarm.NodeStateReady))
	l.await(manager, "all members to run", runsOn(6))
	l.expectOnce("worker", 6)
	w.ExpectNoChange("with the Engine back")
}

// The only manager dies while an apply waits for a training on another node, and is back some seconds later: the
// training continues, and so does the wait.
func TestAccSwarmManagerRestarts(t *testing.T) {
	acceptance.Test(t)
	// The node retries its manager after up to 8 s, and must not count as down until then.
	bed := ownBed(t, testbed.Options{Nodes: 2, Managers: 1, Heartbeat: slowHeartbeat})
	l := newSwarmLab(t, bed, "patient")
	w := newSwarmWorkspace(l)
	done := filepath.Join(t.TempDir(), "done")
	w.configure(l.cluster(""), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["until:%[2]s", "exit:0"]
  mounts   = [{ source = %[3]q, target = %[3]q }]
  roles    = { worker = { replicas = 1, placement = { hosts = ["node2"] } } }
  wait_for = "completed"`, memberImage, done, filepath.Dir(done))))
	wait := w.background("apply", "-auto-approve")
	defer func() { _, _ = wait() }()
	manager := bed.Nodes[0]
	// its last write is done
	waiting := func(group reconcile.Group) bool { return runsOn(1)(group) && !group.Document.Applying }
	before := l.await(manager, "the member to run, and the apply to wait for its end", waiting)
	ctx := t.Context()
	l.must(manager.Kill())
	select { // until the wait has noticed
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	l.must(manager.Restart(ctx))
	l.must(os.WriteFile(done, nil, 0o600))
	if output, err := wait(); err != nil {
		t.Fatalf("the apply: %v\n%s", err, output)
	}
	after := l.await(manager, "the group to complete",
		func(group reconcile.Group) bool { return group.Progress.Phase == domain.PhaseCompleted })
	if now, then := after.Observed[0], before.Observed[0]; now.Restarts != 0 || !now.StartedAt.Equal(*then.StartedAt) {
		t.Errorf("the member is %+v, and was %+v", now, then)
	}
	w.ExpectNoChange("after the manager's restart")
}

// Two of five managers die: nothing changes, except that no other may be removed. When a third dies, every plan fails
// and nothing leaves the state until it is back.
func TestAccSwarmQuorumIsLost(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 5, Managers: 5, Heartbeat: slowHeartbeat})
	l := newSwarmLab(t, bed, "quorum")
	w := newSwarmWorkspace(l)
	configure := func(cluster string) {
		w.configure(cluster, l.group(fmt.Sprintf(`
  image = %q
  args  = ["wait"]
  roles = {
    first  = { replicas = 1, placement = { hosts = ["node1"] } }
    second = { replicas = 1, placement = { hosts = ["node2"] } }
  }`, memberImage)))
	}
	configure(l.wholeBed(5))
	w.Must("apply", "-auto-approve")
	services := func() (specs []dockerswarm.ServiceSpec) {
		t.Helper()
		acctest.EventuallyNoError(t, "a leader to list the services", func() error {
			specs = nil
			for _, role := range []string{"first", "second"} {
				service, _, err := bed.Nodes[0].Client().ServiceInspectWithRaw(t.Context(), l.member(role, 0),
					dockerswarm.ServiceInspectOptions{})
				if err != nil {
					return err
				}
				specs = append(specs, service.Spec)
			}
			return nil
		})
		return specs
	}
	applied := services()
	ctx := t.Context()
	for _, victim := range bed.Nodes[3:] {
		l.must(victim.Kill())
		l.must(bed.Await(ctx, victim, dockerswarm.NodeStateDown))
	}
	w.ExpectNoChange("with two managers down")
	third := bed.Nodes[2]
	configure(strings.Replace(l.wholeBed(5), fmt.Sprintf(`%q, role = "manager"`, third.Host()),
		fmt.Sprintf(`%q, role = "worker"`, third.Host()), 1))
	acceptance.Refuses(w.Workspace,
		acceptance.Says("4 managers, 2 reachable after the change, 3 needed", "Bring back node4, node5 first"), "plan")
	configure(l.wholeBed(5))

	l.must(third.Kill())
	acctest.Eventually(t, "the quorum to be lost", func() bool {
		_, err := bed.Nodes[0].Client().NodeList(ctx, dockerswarm.NodeListOptions{})
		return err != nil
	})
	before := w.Must("state", "list")
	// in parallel, since each waits a minute for a leader
	refresh := w.background("apply", "-refresh-only", "-auto-approve", "-lock=false")
	if code, output := w.exit("plan", "-detailed-exitcode", "-lock=false"); code != 1 ||
		!acceptance.Says("the Swarm's managers have no leader").MatchString(output) {
		t.Errorf("without a quorum a plan ends with %d\n%s", code, output)
	}
	if output, err := refresh(); err == nil {
		t.Errorf("without a quorum a refresh ends well\n%s", output)
	}
	if after := w.Must("state", "list"); after != before {
		t.Errorf("the state had\n%s\nand has\n%s", before, after)
	}
	ctx = acctest.Bounded(t)
	l.must(third.Restart(ctx))
	l.must(bed.Await(ctx, third, dockerswarm.NodeStateReady))
	w.ExpectNoChange("with the quorum back")
	l.must(acceptance.Differences(applied, services()))
}
