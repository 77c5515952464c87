//go:build linux

package swarm

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// standing is a cluster with a controller, in which each test has its own group.
type standing struct {
	*testing.T
	bed  *testbed.Bed
	name string
	// subnet is that of its network, as returned by [swarmtest.OwnSubnet].
	subnet string
}

// newStanding forms a cluster on a bed, which is deleted at the end of the test.
func newStanding(t *testing.T, bed *testbed.Bed, name string) *standing {
	t.Helper()
	s := &standing{t, bed, name, swarmtest.OwnSubnet()}
	swarmtest.LoadMember(t, bed)
	e := s.open(s.bed.Nodes[0].Host())
	t.Cleanup(func() { must(t, e.Dissolve(acctest.Bounded(t))) })
	t.Cleanup(s.logResidents)
	spec, problems, err := e.Complete(t.Context(), domain.Cluster{
		Name: name, Engine: Name, Endpoint: e.Connection.Preferred(),
		Network: &domain.Network{Subnet: s.subnet + ".0.0/20"},
	})
	must(t, err)
	must(t, problems.Err())
	spec, err = e.Form(acctest.Bounded(t), spec)
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	must(t, err)
	must(t, e.StartController(acctest.Bounded(t)))
	return s
}

// logResidents makes a failing test log the state of its cluster's residents.
func (s *standing) logResidents() {
	if !s.Failed() {
		return
	}
	ctx, docker := acctest.Bounded(s), s.bed.Nodes[0].Client()
	only := filters.NewArgs(filters.Arg("label", spec.LabelCluster+"="+s.name))
	services, err := docker.ServiceList(ctx, swarm.ServiceListOptions{Filters: only})
	if err != nil {
		s.Log(err)
	}
	for _, service := range services {
		tasks, err := docker.TaskList(ctx,
			swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", service.ID))})
		s.Logf("service %s, updated %s, placement %+v (%v):", service.Spec.Name, service.UpdatedAt,
			service.Spec.TaskTemplate.Placement, err)
		for _, task := range tasks {
			s.Logf("  task of %s on %s: %s, to be %s, since %s: %s %s", task.CreatedAt, task.NodeID, task.Status.State,
				task.DesiredState,
				task.Status.Timestamp, task.Status.Message, task.Status.Err)
		}
	}
}

// open opens the cluster at an endpoint.
func (s *standing) open(endpoint string) *Engine {
	s.Helper()
	e, err := Open(domain.ClusterRef{Engine: Name, Name: s.name, Endpoint: endpoint}, engine.Settings{},
		daemons.Program{File: acctest.Build(s, acctest.Provider)})
	must(s.T, err)
	return e
}

// group returns a group of a worker with a file and a secret.
func (s *standing) group(name string) (domain.Group, domain.SecretValues) {
	one := 1
	return domain.Group{
		Cluster: s.name, Name: name, Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Template: domain.Template{Image: swarmtest.MemberImage, Args: []string{"file:/etc/setting", "wait"},
			Container: &domain.Container{
				Configs: map[string]domain.ConfigFile{"setting": {Content: "a setting", Target: "/etc/setting"}},
				Secrets: map[string]domain.SecretFile{"token": {Version: "1"}},
			}},
		Roles: map[string]domain.Role{"worker": {Replicas: &one}},
	}, domain.SecretValues{"worker": {"token": []byte("a token")}}
}

// left lists the names of a group's objects in the Swarm.
func (s *standing) left(t *testing.T, group string) []string {
	t.Helper()
	docker := s.bed.Nodes[0].Client()
	only := filters.NewArgs(filters.Arg("label", spec.LabelCluster+"="+s.name),
		filters.Arg("label", spec.LabelGroup+"="+group))
	var found []string
	services, err := docker.ServiceList(t.Context(), swarm.ServiceListOptions{Filters: only})
	must(t, err)
	for _, service := range services {
		found = append(found, service.Spec.Name)
	}
	configs, err := docker.ConfigList(t.Context(), swarm.ConfigListOptions{Filters: only})
	must(t, err)
	for _, config := range configs {
		found = append(found, config.Spec.Name)
	}
	secrets, err := docker.SecretList(t.Context(), swarm.SecretListOptions{Filters: only})
	must(t, err)
	for _, secret := range secrets {
		found = append(found, secret.Spec.Name)
	}
	return found
}

// faulty is a proxy in front of a manager, for runs that reach the manager through it. Each run has a process that ends
// with it, so that its locks are taken over then, and not before.
type faulty struct {
	*testbed.Proxy
	*standing
}

func (s *standing) faulty(t *testing.T) faulty {
	t.Helper()
	proxy := testbed.NewProxy(t, s.bed.Nodes[0])
	return faulty{proxy, s}
}

// run calls do with an engine whose lock owner is a process that ends with the run.
func (f faulty) run(t *testing.T, secrets domain.SecretValues, do func(reconcile.Reconciler) error) error {
	t.Helper()
	e := f.open(f.Host())
	child := exec.CommandContext(t.Context(), "sleep", "infinity")
	must(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
	}()
	process, err := proctree.Lookup(child.Process.Pid)
	must(t, err)
	e.Leases.Self = store.Owner{
		Machine: store.ThisProcess().Machine, Process: process.PID, StartTime: process.StartTime,
	}
	return do(reconcile.Reconciler{Engine: e, Secrets: secrets})
}

func (f faulty) update(ctx context.Context, t *testing.T, group domain.Group, secrets domain.SecretValues) error {
	t.Helper()
	return f.run(t, secrets, func(r reconcile.Reconciler) error { return r.Update(ctx, group) })
}

func (f faulty) destroy(t *testing.T, group domain.Group) error {
	t.Helper()
	return f.run(t, nil, func(r reconcile.Reconciler) error { return r.Destroy(acctest.Bounded(t), group.Name) })
}

// on injects a fault into the k-th writing call.
func (f faulty) on(k int, mishap testbed.Action) {
	f.Reset()
	f.On(testbed.Fault{Match: writes, Nth: k, Do: mishap})
}

// writes reports whether a call to an Engine may change something.
func writes(call testbed.Call) bool {
	return call.Method != http.MethodGet && call.Method != http.MethodHead
}

// count returns the number of writing calls so far.
func (f faulty) count() int {
	return len(slices.DeleteFunc(f.Calls(), func(call testbed.Call) bool { return !writes(call) }))
}

// TestCallsFail injects each fault into each writing call of an apply that creates a group, and of its destroy; without
// AllKills, one fault per call, in turn. The next run converges, and leaves nothing behind.
func TestCallsFail(t *testing.T) {
	t.Parallel()
	s := newStanding(t, testbed.Shared(t, swarmtest.Three), "mishaps")
	ctx := t.Context()
	rehearsal := s.faulty(t)
	group, secrets := s.group("rehearsal")
	must(t, rehearsal.update(ctx, t, group, secrets))
	applies := rehearsal.count()
	rehearsal.Reset()
	must(t, rehearsal.destroy(t, group))
	destroys := rehearsal.count()
	if destroys < 1 || applies < destroys {
		t.Fatalf("an apply makes %d calls that write, a destroy %d", applies, destroys)
	}
	t.Run("each", func(t *testing.T) {
		mishaps := []struct {
			what string
			do   testbed.Action
		}{{"fails", testbed.Fail("no space left on device")}, {"is lost", testbed.Drop()},
			{"loses its answer", testbed.DropAnswer()}}
		for i, mishap := range mishaps {
			for k := 1; k <= applies; k++ {
				if !acctest.AllKills() && k%len(mishaps) != i {
					continue
				}
				t.Run(fmt.Sprintf("write %d %s", k, mishap.what), func(t *testing.T) {
					t.Parallel()
					group, secrets := s.group(fmt.Sprintf("%s-%d", strings.ReplaceAll(mishap.what, " ", "-"), k))
					f := s.faulty(t)
					next := reconcile.Reconciler{Engine: s.open(s.bed.Nodes[0].Host()), Secrets: secrets}

					f.on(k, mishap.do)
					t.Logf("the apply: %v", f.update(acctest.Bounded(t), t, group, secrets))
					must(t, next.Update(acctest.Bounded(t), group))
					read, err := next.Read(t.Context(), group.Name)
					must(t, err)
					if changes := reconcile.Diff(read.Decision, read.Observed); len(changes) > 0 ||
						read.Progress.Phase != domain.PhaseRunning || len(read.Observed) != 1 {
						t.Errorf("the group is %s, its members are %+v; there are changes left: %+v",
							read.Progress.Phase, read.Observed, changes)
					}
					if k <= destroys {
						f.on(k, mishap.do)
						t.Logf("the destroy: %v", f.destroy(t, group))
					}
					must(t, next.Destroy(acctest.Bounded(t), group.Name))
					if left := s.left(t, group.Name); len(left) > 0 {
						t.Errorf("there is left: %v", left)
					}
				})
			}
		}
	})
}
