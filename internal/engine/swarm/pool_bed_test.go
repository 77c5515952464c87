//go:build linux

package swarm_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// farm is a group of a master and interchangeable workers on a real Swarm.
type farm struct {
	*testing.T
	reconcile.Reconciler
	bed    *testbed.Bed
	docker *client.Client
}

// newFarm forms a cluster of two hosts.
func newFarm(t *testing.T) farm {
	t.Helper()
	bed := testbed.New(t, testbed.Options{Nodes: 2, Managers: 1, Heartbeat: testbed.Steady})
	acctest.LoadMember(t, bed, memberImage)
	e := open(t, "lab", bed.Nodes[0].Host())
	spec, problems, err := e.Complete(t.Context(), clusterOn(bed, "lab", 1))
	must(t, err)
	must(t, problems.Err())
	spec, err = e.Form(acctest.Bounded(t), spec)
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	must(t, err)
	return farm{t, reconcile.Reconciler{Engine: e}, bed, bed.Nodes[0].Client()}
}

// group returns the group with this number of workers, which have a config and a secret.
func (f farm) group(workers int, changes ...func(r *domain.Role)) domain.Group {
	role := domain.Role{
		Replicas: &workers, Update: domain.Update{Parallelism: 1},
		Template: domain.Template{Image: memberImage, Args: []string{"wait"}, Container: &domain.Container{
			Configs: map[string]domain.ConfigFile{"train.yaml": {Content: "epochs: 3", Target: "/etc/train.yaml"}},
			Secrets: map[string]domain.SecretFile{"token": {Version: "1"}},
		}},
	}
	for _, change := range changes {
		change(&role)
	}
	return domain.Group{
		Cluster: "lab", Name: "farm", Framework: "spark", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Roles: map[string]domain.Role{
			"master": {Template: domain.Template{Image: memberImage, Args: []string{"wait"}}, Replicas: new(1)},
			"worker": role,
		},
	}
}

// apply applies the group, and checks that nothing is left to do.
func (f farm) apply(spec domain.Group) {
	f.Helper()
	must(f.T, f.Update(acctest.Bounded(f), spec))
	group := f.read()
	if changes := reconcile.Diff(group.Decision, group.Observed); len(changes) > 0 ||
		group.Progress.Phase != domain.PhaseRunning {
		f.Fatalf("the group is %s (%s), and to be changed: %+v", group.Progress.Phase, group.Progress.Reason, changes)
	}
	if diff := cmp.Diff(spec, group.Found().Spec); diff != "" {
		f.Fatalf("it is found as something else (-want +got):\n%s", diff)
	}
}

// destroy destroys the group, and checks that none of its containers is left.
func (f farm) destroy() {
	f.Helper()
	must(f.T, f.Destroy(acctest.Bounded(f), "farm"))
	for _, node := range f.bed.Nodes {
		// A busy Engine may take longer to remove them than the destroy waits for.
		acctest.Eventually(f, "the containers to be gone from "+node.Name, func() bool {
			left, err := node.Client().ContainerList(f.Context(),
				container.ListOptions{
					All: true, Filters: filters.NewArgs(filters.Arg("label", "trainyard.group=farm")),
				})
			must(f.T, err)
			return len(left) == 0
		})
	}
}

func (f farm) read() reconcile.Group {
	f.Helper()
	group, err := f.Read(f.Context(), "farm")
	must(f.T, err)
	return group
}

// tamper changes the workers' service by hand.
func (f farm) tamper(do func(s *dockerswarm.ServiceSpec)) {
	f.Helper()
	acctest.Eventually(f, "the change by hand", func() bool {
		service, _, err := f.docker.ServiceInspectWithRaw(f.Context(), "farm-worker",
			dockerswarm.ServiceInspectOptions{})
		must(f.T, err)
		do(&service.Spec)
		_, err = f.docker.ServiceUpdate(f.Context(), service.ID, service.Version, service.Spec,
			dockerswarm.ServiceUpdateOptions{})
		if !dockerapi.OutOfSequence(err) {
			must(f.T, err)
		}
		return err == nil
	})
}

// running returns the IDs of the workers' running tasks.
func (f farm) running() (ids []string) {
	f.Helper()
	service, _, err := f.docker.ServiceInspectWithRaw(f.Context(), "farm-worker", dockerswarm.ServiceInspectOptions{})
	must(f.T, err)
	tasks, err := f.docker.TaskList(f.Context(), dockerswarm.TaskListOptions{})
	must(f.T, err)
	for _, task := range tasks {
		if task.ServiceID == service.ID && task.Status.State == dockerswarm.TaskStateRunning &&
			task.DesiredState == dockerswarm.TaskStateRunning {
			ids = append(ids, task.ID)
		}
	}
	return ids
}

// files returns the labels of the config objects and secrets that hold members' files, by name.
func (f farm) files() map[string]map[string]string {
	f.Helper()
	files := map[string]map[string]string{}
	configs, err := f.docker.ConfigList(f.Context(), dockerswarm.ConfigListOptions{})
	must(f.T, err)
	for _, config := range configs {
		if strings.HasPrefix(config.Spec.Name, "trainyard.lab.file.") {
			files[config.Spec.Name] = config.Spec.Labels
		}
	}
	secrets, err := f.docker.SecretList(f.Context(), dockerswarm.SecretListOptions{})
	must(f.T, err)
	for _, secret := range secrets {
		if !strings.HasPrefix(secret.Spec.Name, "trainyard.lab.agent.key.") {
			files[secret.Spec.Name] = secret.Spec.Labels
		}
	}
	return files
}

// TestPoolLifecycle changes the one service that the workers share by hand.
func TestPoolLifecycle(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	f.Secrets = domain.SecretValues{"worker": {"token": []byte("first")}}
	spec := f.group(3)
	f.apply(spec)
	for _, replicas := range []int{5, 1, 0} {
		n := uint64(replicas)
		f.tamper(func(s *dockerswarm.ServiceSpec) { s.Mode.Replicated.Replicas = &n })
		acctest.Eventually(t, "the other number to show",
			func() bool { return *f.read().Found().Spec.Roles["worker"].Replicas == replicas })
		left := f.running()
		f.apply(spec)
		kept := slices.DeleteFunc(f.running(), func(id string) bool { return !slices.Contains(left, id) })
		if len(kept) < min(replicas, 3) {
			t.Errorf("of %d workers, %d run on", replicas, len(kept))
		}
	}

	three := f.running()
	f.tamper(func(s *dockerswarm.ServiceSpec) { s.UpdateConfig.Parallelism = 7 })
	if got := f.read().Found().Spec.Roles["worker"].Update.Parallelism; got != 7 {
		t.Errorf("an update of 7 at a time is found as %d", got)
	}
	f.apply(spec)
	spec = f.group(3,
		func(r *domain.Role) { r.Update = domain.Update{Parallelism: 2, OnFailure: domain.UpdateContinue} })
	f.apply(spec)
	if now := f.running(); !cmp.Equal(sorted(three), sorted(now)) {
		t.Errorf("for how they are updated, workers %v have become %v", three, now)
	}
	f.destroy()
}

func sorted(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

// TestPoolUpdatePaused updates workers one at a time to a command that fails: the error names the one that failed, and
// the others keep running.
func TestPoolUpdatePaused(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	f.Secrets = domain.SecretValues{"worker": {"token": []byte("first")}}
	f.apply(f.group(3))
	before := f.running()
	// Swarm continues with the next one once one runs, and only then notices that it fails. On a busy machine, it takes
	// a while to end.
	pause := domain.Duration(time.Minute)
	fails := func(r *domain.Role) {
		r.Args, r.Restart = []string{"print:it broke", "exit:3"}, domain.Restart{Condition: domain.RestartNever}
		r.Update.Delay = &pause
	}
	var failure *reconcile.MemberError
	err := f.Update(acctest.Bounded(t), f.group(3, fails))
	if !errors.As(err, &failure) || failure.Member.Role != "worker" || !slices.Contains(failure.Log, "it broke") {
		t.Fatalf("workers that fail: %v", err)
	}
	kept := slices.DeleteFunc(f.running(), func(id string) bool { return !slices.Contains(before, id) })
	if len(kept) < 2 {
		t.Errorf("beside the one that failed, %d workers run on", len(kept))
	}

	// The reconciler does the rollback.
	f.apply(f.group(3))
	back := func(r *domain.Role) { r.Update.OnFailure = domain.UpdateRollback }
	if err := f.Update(acctest.Bounded(t), f.group(3, fails, back)); err == nil ||
		!strings.Contains(err.Error(), "was rolled back") {
		t.Fatalf("workers that fail and go back: %v", err)
	}
	group := f.read()
	if diff := cmp.Diff(f.group(3), group.Found().Spec); diff != "" ||
		len(reconcile.Diff(group.Decision, group.Observed)) > 0 {
		t.Errorf("it is found as something else than before (-want +got):\n%s", diff)
	}
	f.destroy()
}

// TestPoolGivesUp: workers that always fail use up all attempts, and have failed then. Until then, a task that was
// asked to end has a successor in every list.
func TestPoolGivesUp(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	f.Secrets = domain.SecretValues{"worker": {"token": []byte("first")}}
	// Each worker runs for a moment, so that the apply may succeed.
	err := f.Update(acctest.Bounded(t), f.group(2, func(r *domain.Role) { r.Args = []string{"exit:3"} }))
	t.Logf("the apply: %v", err)
	var tasks []dockerswarm.Task
	acctest.Eventually(t, "the workers to fail for good", func() bool {
		tasks, err = f.docker.TaskList(t.Context(), dockerswarm.TaskListOptions{
			Filters: filters.NewArgs(filters.Arg("service", "farm-worker")),
		})
		must(t, err)
		for _, task := range tasks {
			of := slices.DeleteFunc(slices.Clone(tasks), func(o dockerswarm.Task) bool { return o.Slot != task.Slot })
			newest := slices.MaxFunc(of, func(a, b dockerswarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
			if newest.DesiredState == dockerswarm.TaskStateShutdown && len(of) <= domain.DefaultMaxAttempts {
				t.Errorf("after %d attempts, the last of which is %s, there is no next one", len(of), newest.Status.State)
			}
		}
		failed := 0
		for _, o := range f.read().Observed {
			if o.State == domain.StateFailed && o.LastError == "exit code 3, after 6 restarts" && *o.ExitCode == 3 {
				failed++
			} else if o.State == domain.StateFailed {
				t.Errorf("%s: %s", o.Name, o.LastError)
			}
		}
		return failed == 2
	})
	t.Logf("%d tasks are left", len(tasks))
	f.destroy()
}

// TestFilesOfMembers follows the config objects and secrets of a group over its lifetime.
func TestFilesOfMembers(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	f.Secrets = domain.SecretValues{"worker": {"token": []byte("first")}}
	f.apply(f.group(1))
	first := f.files()
	if len(first) != 2 {
		t.Fatalf("there are the files %v", first)
	}
	stranger, err := f.docker.ConfigCreate(t.Context(), dockerswarm.ConfigSpec{
		Annotations: dockerswarm.Annotations{Name: "stranger", Labels: map[string]string{
			"trainyard.cluster": "another", "trainyard.group": "farm", "trainyard.kind": "file",
		}}, Data: []byte("x"),
	})
	must(t, err)

	// Without their labels, the objects are found by their names, and labelled again.
	configs, err := f.docker.ConfigList(t.Context(), dockerswarm.ConfigListOptions{})
	must(t, err)
	for _, config := range configs {
		if strings.HasPrefix(config.Spec.Name, "trainyard.lab.file.") {
			config.Spec.Labels = map[string]string{"team": "vision"}
			must(t, f.docker.ConfigUpdate(t.Context(), config.ID, config.Version, config.Spec))
		}
	}
	secrets, err := f.docker.SecretList(t.Context(), dockerswarm.SecretListOptions{})
	must(t, err)
	for _, secret := range secrets {
		if strings.HasPrefix(secret.Spec.Name, "trainyard.lab.agent.key.") {
			continue // the controller changes its labels
		}
		secret.Spec.Labels = nil
		must(t, f.docker.SecretUpdate(t.Context(), secret.ID, secret.Version, secret.Spec))
	}
	if changes := reconcile.Diff(f.read().Decision, f.read().Observed); len(changes) > 0 {
		t.Errorf("for labels of its files the group is to be changed: %+v", changes)
	}
	f.Secrets = nil
	f.apply(f.group(1, func(r *domain.Role) { r.Env = map[string]string{"A": "1"} }))
	for name, labels := range f.files() {
		want := maps.Clone(first[name])
		if strings.Contains(name, ".file.") {
			want["team"] = "vision"
		}
		if diff := cmp.Diff(want, labels); diff != "" {
			t.Errorf("the labels of %s (-want +got):\n%s", name, diff)
		}
	}

	// New contents become new objects, and the change removes the objects that no member needs any more.
	f.Secrets = domain.SecretValues{"worker": {"token": []byte("second")}}
	f.apply(f.group(2, func(r *domain.Role) {
		c := *r.Container
		c.Configs = map[string]domain.ConfigFile{"train.yaml": {Content: "epochs: 4", Target: "/etc/train.yaml"}}
		c.Secrets = map[string]domain.SecretFile{"token": {Version: "2"}}
		r.Container = &c
	}))
	second := f.files()
	for name := range second {
		if _, old := first[name]; old || len(second) != 2 {
			t.Errorf("there are the files %v, and were %v", second, first)
		}
	}

	// A failing change is rolled back to a secret whose value only the Swarm still has.
	f.Secrets = domain.SecretValues{"worker": {"token": []byte("third")}}
	failing := f.group(2, func(r *domain.Role) {
		r.Args, r.Restart = []string{"exit:3"}, domain.Restart{Condition: domain.RestartNever}
		r.Container = &domain.Container{Secrets: map[string]domain.SecretFile{"token": {Version: "3"}}}
		r.Update.OnFailure = domain.UpdateRollback
	})
	if err := f.Update(acctest.Bounded(t), failing); err == nil || !strings.Contains(err.Error(), "was rolled back") {
		t.Fatalf("workers that fail and go back: %v", err)
	}
	if now := f.files(); !cmp.Equal(second, now) {
		t.Errorf("there are the files %v, and were %v", now, second)
	}

	f.destroy()
	if left := f.files(); len(left) > 0 {
		t.Errorf("after the group there are the files %v", left)
	}
	if _, _, err := f.docker.ConfigInspectWithRaw(t.Context(), stranger.ID); err != nil {
		t.Errorf("what is not the cluster's: %v", err)
	}
}
