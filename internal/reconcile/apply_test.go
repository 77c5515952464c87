package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// applied returns an engine on which the group runs.
func applied(t *testing.T, spec domain.Group) (*fake, reconcile.Reconciler) {
	t.Helper()
	f := newFake()
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), spec))
	return f, r
}

// expectStates fails unless the members, sorted by name, are in these states.
func (f *fake) expectStates(t *testing.T, want ...string) {
	t.Helper()
	if got := f.states(); got != fmt.Sprint(want) {
		t.Errorf("the members are %s, not %v", got, want)
	}
}

// TestRerunAfterLostDocument: an apply that stores a lost document again leaves the members alone. A rerun and a
// restart of the whole group start them in a later run than theirs.
func TestRerunAfterLostDocument(t *testing.T) {
	f := newFake()
	r := reconcile.Reconciler{Engine: f}
	for _, value := range []string{"1", "2", "3"} {
		must(t, r.Update(within(t), group(0, 2, asAWhole, trigger(value))))
	}
	highest := f.cast()["mnist-worker-0"].spec.Run
	drop[domain.GroupDocument](f)
	s := &turns{fake: f}
	r.Engine = s
	_, err := r.Create(within(t), group(0, 2, asAWhole, trigger("3")))
	must(t, err)
	must(t, r.Update(within(t), group(0, 2, asAWhole, trigger("4"))))
	f.put("mnist-worker-0", func(o *domain.Observed) { o.State, o.ExitCode = domain.StateFailed, new(1) })
	_, err = r.Keep(within(t), "mnist")
	must(t, err)
	want := []string{"train: worker-0 worker-1 (2 run)", "train: worker-0 worker-1 (1 run)"}
	if diff := cmp.Diff(want, s.taken); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if doc := f.document(t, "mnist"); f.cast()["mnist-worker-0"].spec.Run <= highest || doc.GroupRestarts != 1 {
		t.Errorf("run %d after run %d, restarts %d", f.cast()["mnist-worker-0"].spec.Run, highest, doc.GroupRestarts)
	}
}

func TestCreate(t *testing.T) {
	f := newFake()
	e, calls := recorded(f)
	adopted, err := reconcile.Reconciler{Engine: e}.Create(within(t), group(1, 2))
	if err != nil || adopted {
		t.Fatalf("a new group: adopted %v, %v", adopted, err)
	}
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)", "mnist-worker-1 (running)")
	if doc := f.document(t, "mnist"); doc.Applying || doc.Revision != 2 || doc.MinRun != 1 {
		t.Errorf("the document is %+v", doc)
	}
	for name, a := range f.cast() {
		if a.spec.Run != 1 || a.spec.Env["TF_CONFIG"] == "" {
			t.Errorf("%s runs %+v", name, a.spec)
		}
	}
	if len(f.locks) > 0 {
		t.Errorf("after the apply the locks %v are held", f.locks)
	}
	want := []string{
		"Get group",
		"Lock", "Lock", "Get cluster", "Inventory", "List group", "List sweep", "Observe", "List room-request",
		"Preflight", "Put group",
		"StartController", "Stage", "Start", "Watch", "Observe", "Get group", "Observe", "Get group", "Put group",
		"Prune",
	}
	if diff := cmp.Diff(want, calls.made()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Secret values reach the engine with the member specifications, and are in no document.
func TestSecretsReachTheEngine(t *testing.T) {
	f := newFake()
	secrets := domain.SecretValues{"worker": {"token": []byte("hunter2")}}
	must(t, reconcile.Reconciler{Engine: f, Secrets: secrets}.Update(within(t), group(1, 1)))
	for name, a := range f.cast() {
		if got := string(a.spec.Secrets["worker"]["token"]); got != "hunter2" {
			t.Errorf("%s was staged with the secret %q", name, got)
		}
	}
	if stored := f.raw(t, "mnist"); strings.Contains(stored, "hunter2") {
		t.Errorf("the secret is in the document: %s", stored)
	}
}

func TestCreateOverAnExistingGroup(t *testing.T) {
	other := group(1, 1, func(g *domain.Group) { g.Command = []string{"other"} })
	for name, c := range map[string]struct {
		existing domain.Group
		dead     bool
		adopted  bool
	}{
		"the same":                       {group(1, 1), false, true},
		"another":                        {other, false, false},
		"what a dead apply left, same":   {group(1, 1), true, true},
		"what a dead apply left, other":  {other, true, true},
		"the same, but for its triggers": {group(1, 1, trigger("v1")), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := applied(t, c.existing)
			if c.dead {
				doc := f.document(t, "mnist")
				doc.Applying = true
				_, err := engine.Put(t.Context(), f, doc)
				must(t, err)
			}
			before := f.document(t, "mnist")
			adopted, err := r.Create(within(t), group(1, 1))
			if adopted != c.adopted {
				t.Errorf("adopted is %v", adopted)
			}
			if !c.adopted {
				var exists *reconcile.ExistsError
				if !errors.As(err, &exists) || *exists != (reconcile.ExistsError{Cluster: "lab", Group: "mnist"}) ||
					!strings.Contains(err.Error(), "terraform import <address> lab/mnist") {
					t.Errorf("the error is %v", err)
				}
				if diff := cmp.Diff(before, f.document(t, "mnist")); diff != "" {
					t.Errorf("the document was changed (-before +after):\n%s", diff)
				}
				return
			}
			must(t, err)
			f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)")
			if doc := f.document(t, "mnist"); doc.Applying || !doc.Spec.Equal(group(1, 1)) {
				t.Errorf("the document is %+v", doc)
			}
			restarted := f.cast()["mnist-ps-0"].runs > 1
			if want := !c.existing.Equal(group(1, 1)); restarted != want {
				t.Errorf("members were restarted: %v", restarted)
			}
		})
	}
}

// TestCreateOverAFailedGroup: Create adopts a failed group as it is; only a change or a trigger runs it again.
func TestCreateOverAFailedGroup(t *testing.T) {
	f, r := applied(t, group(1, 1))
	f.put("mnist-worker-0", func(o *domain.Observed) { fail(o, 3, 0) })
	if adopted, err := r.Create(within(t), group(1, 1)); err != nil || !adopted {
		t.Errorf("a failed group: adopted %v, %v", adopted, err)
	}
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (failed)")

	// A group that also lacks a member does not match its specification.
	must(t, f.Remove(t.Context(), []string{"mnist-ps-0"}))
	for range 2 {
		_, err := f.Observe(t.Context(), "")
		must(t, err)
	}
	f.expectStates(t, "mnist-worker-0 (failed)")
	if adopted, err := r.Create(within(t), group(1, 1)); err != nil || !adopted {
		t.Errorf("a failed group with a member missing: adopted %v, %v", adopted, err)
	}
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)")
}

// TestUpdateKeepsWhatIsAsDesired changes a group of one parameter server and two workers, and
// checks which members restart.
func TestUpdateKeepsWhatIsAsDesired(t *testing.T) {
	for name, c := range map[string]struct {
		after domain.Group
		// runs is how often each member was started in total.
		runs map[string]int
	}{
		"no change": {
			group(1, 2), map[string]int{"mnist-ps-0": 1, "mnist-worker-0": 1, "mnist-worker-1": 1},
		},
		"what it waits for": {
			group(1, 2, func(g *domain.Group) { g.Completion.Deadline = duration(1 << 62) }),
			map[string]int{"mnist-ps-0": 1, "mnist-worker-0": 1, "mnist-worker-1": 1},
		},
		"one role": {
			group(1, 2, role("worker", func(r *domain.Role) { r.Resources.CPUs = 1 })),
			map[string]int{"mnist-ps-0": 1, "mnist-worker-0": 2, "mnist-worker-1": 2},
		},
		"a further worker": {
			group(1, 3), map[string]int{"mnist-ps-0": 2, "mnist-worker-0": 2, "mnist-worker-1": 2, "mnist-worker-2": 1},
		},
		"a worker less": {group(1, 1), map[string]int{"mnist-ps-0": 2, "mnist-worker-0": 2}},
		"a trigger": {
			group(1, 2, trigger("v2")), map[string]int{"mnist-ps-0": 2, "mnist-worker-0": 2, "mnist-worker-1": 2},
		},
		"other labels of hosts": {
			group(1, 2, role("ps", func(r *domain.Role) { r.Placement.Strategy = domain.Pack })),
			map[string]int{"mnist-ps-0": 1, "mnist-worker-0": 1, "mnist-worker-1": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := applied(t, group(1, 2))
			must(t, r.Update(within(t), c.after))
			got := map[string]int{}
			for name, a := range f.cast() {
				got[name] = a.runs
				if a.observed.State != domain.StateRunning {
					t.Errorf("%s is %s when the update has ended", name, a.observed.State)
				}
			}
			if diff := cmp.Diff(c.runs, got); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpdateWithoutChange: nothing is staged or removed. What is staged is started, in case an apply died just before.
func TestUpdateWithoutChange(t *testing.T) {
	f, _ := applied(t, group(1, 2))
	e, calls := recorded(f)
	must(t, reconcile.Reconciler{Engine: e}.Update(within(t), group(1, 2)))
	want := []string{
		"Lock", "Lock", "Get cluster", "Inventory", "List group", "List sweep", "Observe", "Preflight", "Put group",
		"StartController", "Start", "Watch", "Observe", "Get group", "Put group", "Prune",
	}
	if diff := cmp.Diff(want, calls.made()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestRefused: what the specification or the hosts don't allow changes nothing.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec domain.Group
		want string
	}{
		"by the specification": {group(1, 0), "Missing role"},
		"by the hosts": {
			group(1, 1, role("worker", func(r *domain.Role) { r.Resources.CPUs = 65 })), "Request beyond any host",
		},
		"by the engine": {group(1, 1, func(g *domain.Group) { g.Command = []string{"absent"} }), "Command not found"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := applied(t, group(1, 1))
			before := f.document(t, "mnist")
			f.absent = "absent"
			err := reconcile.Reconciler{Engine: f}.Update(within(t), c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, and does not say %q", err, c.want)
			}
			if diff := cmp.Diff(before, f.document(t, "mnist")); diff != "" {
				t.Errorf("the document was changed (-before +after):\n%s", diff)
			}
			if len(f.staged) > 0 || len(f.locks) > 0 {
				t.Errorf("left are %v staged, and the locks %v", f.staged, f.locks)
			}
		})
	}
}

// TestRemovalComesFirst: removed members are gone before anything is staged.
func TestRemovalComesFirst(t *testing.T) {
	f, _ := applied(t, group(1, 3))
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if call == "Stage" && len(f.cast()) != 2 {
			t.Errorf("while members are staged there are %s", f.states())
		}
		return nil
	}
	must(t, reconcile.Reconciler{Engine: e}.Update(within(t), group(1, 1)))
	if made := calls.made(); slices.Index(made, "Remove") == -1 || slices.Index(made, "Stage") == -1 {
		t.Errorf("the calls are %v", made)
	}
}

// forgetful is an engine that ignores its first removals.
type forgetful struct {
	engine.Engine

	removals, forgets int
}

func (f *forgetful) Remove(ctx context.Context, names []string) error {
	if f.removals++; f.removals <= f.forgets {
		return nil
	}
	return f.Engine.Remove(ctx, names)
}

// TestRemovalIsRepeated: an apply removes members again if the engine has not.
func TestRemovalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &forgetful{Engine: newFake(), forgets: 2}
		r := reconcile.Reconciler{Engine: e}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must(t, r.Update(ctx, group(1, 3)))
		must(t, r.Update(ctx, group(1, 1)))
		observed, err := e.Observe(ctx, "mnist")
		must(t, err)
		if len(observed) != 2 || e.removals != 3 {
			t.Errorf("after %d removals there are %d members, want 2 after 3", e.removals, len(observed))
		}
	})
}

var errNonsense = errors.New("nonsense")
