package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestDestroy: workers end before parameter servers, and members of unknown roles last.
func TestDestroy(t *testing.T) {
	f, r := applied(t, group(2, 2))
	must(t, r.Update(within(t), group(1, 1, func(g *domain.Group) { g.Name = "other" })))
	f.members["mnist-old-0"] = &actor{
		observed: domain.Observed{Name: "mnist-old-0", Group: "mnist", Role: "old", State: domain.StateRunning},
	}
	e, calls := recorded(f)
	var waves []string
	calls.before = func(call string) error {
		if call == "Remove" {
			var left []string
			for _, o := range f.look("mnist") {
				left = append(left, o.Role)
			}
			waves = append(waves, strings.Join(left, " "))
		}
		return nil
	}
	must(t, reconcile.Reconciler{Engine: e}.Destroy(within(t), "mnist"))
	if diff := cmp.Diff([]string{"old ps ps worker worker", "old ps ps", "old"}, waves); diff != "" {
		t.Errorf("members that are left before each wave (-want +got):\n%s", diff)
	}
	if _, err := engine.Get[domain.GroupDocument](t.Context(), f, "mnist"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the destroyed group is still there (%v)", err)
	}
	f.expectStates(t, "other-ps-0 (running)", "other-worker-0 (running)")
	// Destroy needs no controller, so one that can't be started does not prevent it.
	if made := calls.made(); made[len(made)-1] != "Delete group" || slices.Contains(made, "StartController") {
		t.Errorf("the calls are %v", made)
	}
	if len(f.locks) > 0 {
		t.Errorf("the locks %v are still held", f.locks)
	}

	e, calls = recorded(f)
	must(t, reconcile.Reconciler{Engine: e}.Destroy(within(t), "mnist"))
	if diff := cmp.Diff([]string{
		"Lock", "Get group", "Observe", "List policy", "List learned-model", "Prune", "Delete group",
	}, calls.made()); diff != "" {
		t.Errorf("calls of a destroy of nothing (-want +got):\n%s", diff)
	}
}

// TestDestroyOfMembersWithoutADocument: Destroy removes what an interrupted destroy left behind.
func TestDestroyOfMembersWithoutADocument(t *testing.T) {
	f, r := applied(t, group(1, 1))
	must(t, engine.Delete[domain.GroupDocument](t.Context(), f, "mnist"))
	must(t, r.Destroy(within(t), "mnist"))
	f.expectStates(t)
}

func TestRead(t *testing.T) {
	f, r := applied(t, group(1, 2))
	f.put("mnist-worker-1", func(o *domain.Observed) { o.State = domain.StateFailed })
	read, err := r.Read(t.Context(), "mnist")
	must(t, err)
	if diff := cmp.Diff(domain.Progress{Phase: domain.PhaseDegraded, Reason: "failed: mnist-worker-1"},
		read.Progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(f.document(t, "mnist"), read.Document); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(f.look("mnist"), read.Observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
	if changes := reconcile.Diff(read.Decision, read.Observed); len(changes) > 0 {
		t.Errorf("what was applied and read has the changes %+v", changes)
	}
	if _, err := r.Read(t.Context(), "other"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a group that is not there: %v, not ErrNotFound", err)
	}
}

// TestReadsAreConstant: reading a group and listing pending work take the same calls for any number of members.
func TestReadsAreConstant(t *testing.T) {
	for _, workers := range []int{1, 200} {
		f, _ := applied(t, group(1, workers))
		e, calls := recorded(f)
		r := reconcile.Reconciler{Engine: e}
		_, err := r.Read(t.Context(), "mnist")
		must(t, err)
		if diff := cmp.Diff([]string{"Get group", "Get cluster", "Observe"}, calls.made()); diff != "" {
			t.Errorf("calls of a read with %d workers (-want +got):\n%s", workers, diff)
		}
		calls.calls = nil
		_, err = r.Pending(t.Context(), epoch)
		must(t, err)
		if diff := cmp.Diff([]string{"List group", "Get cluster", "Observe"}, calls.made()); diff != "" {
			t.Errorf("calls of a look with %d workers (-want +got):\n%s", workers, diff)
		}
	}
}

// A group that uses GPUs is read with the documents of the pools, and without asking any host.
func TestReadOfGroupWithGPUs(t *testing.T) {
	f, r := poolOf(t, "GPU-a4", "GPU-a5")
	must(t, r.Update(within(t), pooled("mnist")))
	e, calls := recorded(f)
	_, err := reconcile.Reconciler{Engine: e}.Read(t.Context(), "mnist")
	must(t, err)
	if diff := cmp.Diff([]string{"Get group", "Get cluster", "List gpu-pool", "Observe"}, calls.made()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	calls.before = func(call string) error {
		if call == "List gpu-pool" {
			return engine.ErrNotFound
		}
		return nil
	}
	if _, err := (reconcile.Reconciler{Engine: e}).Read(t.Context(), "mnist"); err == nil ||
		errors.Is(err, engine.ErrNotFound) {
		t.Errorf("without the pools: %v", err)
	}
}

// unobservable is an engine on which one group can't be observed.
type unobservable struct {
	engine.Engine
	group string
}

func (u unobservable) Observe(ctx context.Context, group string) ([]domain.Observed, error) {
	if group == u.group || group == "" {
		return nil, &engine.CorruptError{Where: u.group}
	}
	return u.Engine.Observe(ctx, group)
}

func TestPendingWithoutOne(t *testing.T) {
	f, r := applied(t, group(1, 1))
	must(t, r.Update(within(t), group(1, 1, func(g *domain.Group) { g.Name = "other" })))
	f.members["mnist-worker-0"].observed.State = domain.StateCompleted
	f.members["other-worker-0"].observed.State = domain.StateCompleted
	pending, err := reconcile.Reconciler{Engine: unobservable{f, "other"}}.Pending(t.Context(), epoch)
	if _, corrupt := errors.AsType[*engine.CorruptError](err); !corrupt || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("with a group that can't be observed: %v", err)
	}
	if diff := cmp.Diff([]reconcile.Due{{Group: "mnist", Due: epoch}}, pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

// TestEngineFaults makes each call of each operation fail in turn: the operation fails with the same error, and never
// reports something as not found.
func TestEngineFaults(t *testing.T) {
	boom := errors.New("the engine is out of reach")
	// If all members can't be observed at once, groups are observed one by one; failed pruning is ignored.
	overcome := map[string]string{"pending": "Observe", "create": "Prune", "update": "Prune"}
	completing := func(f *fake) {
		f.members["mnist-worker-0"].observed.State = domain.StateCompleted
	}
	failing := func(f *fake) {
		fail(&f.members["mnist-worker-0"].observed, 137, 0)
	}
	for name, c := range map[string]struct {
		prepare func(f *fake)
		do      func(ctx context.Context, r reconcile.Reconciler) error
		// calls are the calls that the operation makes.
		calls []string
	}{
		"create": {
			func(f *fake) {
				drop[domain.GroupDocument](f)
				f.members = map[string]*actor{}
			},
			func(ctx context.Context, r reconcile.Reconciler) error {
				adopted, err := r.Create(ctx, group(1, 1))
				if adopted {
					t.Errorf("a new group was adopted (%v)", err)
				}
				return err
			},
			[]string{
				"Get cluster", "Get group", "Inventory", "List group", "List room-request", "List sweep", "Lock",
				"Observe", "Preflight", "Prune", "Put group", "Stage", "Start", "StartController", "Watch",
			},
		},
		"update": {
			nil,
			func(ctx context.Context, r reconcile.Reconciler) error { return r.Update(ctx, group(1, 0, onlyChief)) },
			[]string{
				"Get cluster", "Get group", "Inventory", "List group", "List room-request", "List sweep", "Lock",
				"Observe", "Preflight", "Prune", "Put group", "Remove", "Stage", "Start", "StartController", "Watch",
			},
		},
		"destroy": {
			nil,
			func(ctx context.Context, r reconcile.Reconciler) error { return r.Destroy(ctx, "mnist") },
			[]string{
				"Delete group", "Get group", "List learned-model", "List policy", "Lock", "Observe", "Prune", "Remove",
				"Watch",
			},
		},
		"read": {
			nil,
			func(ctx context.Context, r reconcile.Reconciler) error { _, err := r.Read(ctx, "mnist"); return err },
			[]string{"Get cluster", "Get group", "Observe"},
		},
		"pending": {
			nil,
			func(ctx context.Context, r reconcile.Reconciler) error { _, err := r.Pending(ctx, epoch); return err },
			[]string{"Get cluster", "List group", "Observe"},
		},
		"keep, to stop": {
			completing,
			func(ctx context.Context, r reconcile.Reconciler) error { _, err := r.Keep(ctx, "mnist"); return err },
			[]string{"Get cluster", "Get group", "Lock", "Observe", "Stop"},
		},
		"keep, to restart": {
			failing,
			func(ctx context.Context, r reconcile.Reconciler) error { _, err := r.Keep(ctx, "mnist"); return err },
			[]string{"Get cluster", "Get group", "Lock", "Observe", "Put group", "Stage", "Start"},
		},
		"keep, to move": {
			func(f *fake) { f.lose("a") },
			func(ctx context.Context, r reconcile.Reconciler) error { _, err := r.Keep(ctx, "mnist"); return err },
			[]string{
				"Get cluster", "Get group", "Inventory", "List group", "List sweep", "Lock", "Observe", "Put group",
				"Stage", "Start",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			prepared := func() (reconcile.Reconciler, *fake, *recorder) {
				f, _ := applied(t, group(1, 1, asAWhole))
				if c.prepare != nil {
					c.prepare(f)
				}
				e, calls := recorded(f)
				return reconcile.Reconciler{Engine: e}, f, calls
			}
			r, _, calls := prepared()
			must(t, c.do(t.Context(), r))
			if diff := cmp.Diff(c.calls, calls.names()); diff != "" {
				t.Fatalf("calls (-want +got):\n%s", diff)
			}
			made := calls.made()
			for k, call := range made {
				r, f, calls := prepared()
				calls.before = func(string) error {
					if len(calls.made()) == k+1 {
						return boom
					}
					return nil
				}
				err := c.do(t.Context(), r)
				if call == overcome[name] {
					must(t, err)
				} else if !errors.Is(err, boom) || errors.Is(err, engine.ErrNotFound) {
					t.Errorf("with a fault in call %d, %s: %v", k, call, err)
				}
				if len(f.locks) > 0 {
					t.Errorf("after a fault in call %d, %s, the locks %v are held", k, call, f.locks)
				}
			}
		})
	}
}

// onlyChief replaces the workers of a group by one chief.
func onlyChief(g *domain.Group) {
	g.Roles["chief"] = domain.Role{Replicas: new(1)}
}

func TestNoCluster(t *testing.T) {
	f, r := applied(t, group(1, 1))
	f.Drop(engine.Key{Kind: domain.ClusterKind})
	for name, do := range map[string]func() error{
		"update": func() error { return r.Update(within(t), group(1, 2)) },
		"read":   func() error { _, err := r.Read(t.Context(), "mnist"); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "cluster") {
			t.Errorf("%s without a cluster: %v", name, err)
		}
	}
}
