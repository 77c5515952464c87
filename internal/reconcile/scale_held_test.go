package reconcile_test

import (
	"errors"
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

// TestScaleIsHeld: a group that must not be scaled is left alone, and the error says why.
func TestScaleIsHeld(t *testing.T) {
	edit := func(change func(doc *domain.GroupDocument)) func(t *testing.T, f *fake) {
		return func(t *testing.T, f *fake) {
			doc := f.document(t, "mnist")
			change(&doc)
			_, err := engine.Put(t.Context(), f, doc)
			must(t, err)
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, f *fake)
		scale  reconcile.Scaling
		want   string
	}{
		"an apply that did not end": {
			change: edit(func(doc *domain.GroupDocument) { doc.Applying = true }),
			want:   `an apply of group "mnist" is in progress`,
		},
		"completed": {
			change: func(_ *testing.T, f *fake) {
				f.put("mnist-worker-0", func(o *domain.Observed) { o.State = domain.StateCompleted })
			}, want: `group "mnist" has completed`,
		},
		"failed": {
			change: func(_ *testing.T, f *fake) { f.put("mnist-worker-0", func(o *domain.Observed) { fail(o, 3, 0) }) },
			want:   `group "mnist" has failed`,
		},
		"replicas that are declared": {
			change: edit(func(doc *domain.GroupDocument) {
				role("worker", func(r *domain.Role) { r.Replicas = new(2) })(&doc.Spec)
			}),
			want: `role "worker" of group "mnist" sets replicas = 2: Terraform manages its count`,
		},
		"a role that has one member at most": {
			change: edit(func(doc *domain.GroupDocument) { doc.Spec.Roles["chief"] = domain.Role{} }),
			scale:  reconcile.Scaling{Group: "mnist", Role: "chief", From: 1, To: 0},
			want:   `framework "tensorflow" takes at most 1 member of role "chief"`,
		},
		"another role": {
			scale: reconcile.Scaling{Group: "mnist", Role: "chief", From: 0, To: 1},
			want:  `group "mnist" has no role "chief"`,
		},
		"a host that is down": {
			change: func(_ *testing.T, f *fake) { f.lose("a") }, want: "host a is down: mnist-ps-0, mnist-worker-1",
		},
		"a host that is no longer one of the cluster's": {
			change: func(_ *testing.T, f *fake) { f.setHosts(map[string]domain.Host{"a": f.hosts()["a"]}) },
			want:   "host b is no longer in the cluster, and an apply has to move its members: mnist-worker-0",
		},
		"members that could not run": {
			change: func(_ *testing.T, f *fake) { f.absent = "train" },
			want:   `more members of role "worker" can't run: "train" is not there`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := following(t, group(1, 2))
			if c.change != nil {
				c.change(t, f)
			}
			if c.scale.Group == "" {
				c.scale = scaling(2, 3)
			}
			before := f.document(t, "mnist")
			e, calls := recorded(f)
			done, short, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(within(t), c.scale)
			held, is := errors.AsType[*reconcile.HeldError](err)
			if !is || !strings.Contains(held.Why, c.want) || held.Error() != held.Why {
				t.Errorf("the error is %v, want one that says %q", err, c.want)
			}
			if short != "" || done.To != done.From {
				t.Errorf("done is %+v, short %q", done, short)
			}
			calls.expectUnchanged(t, f, before)
		})
	}
}

// expectUnchanged fails if anything but the lock of the group was changed.
func (r *recorder) expectUnchanged(t *testing.T, f *fake, before domain.GroupDocument) {
	t.Helper()
	for _, call := range r.names() {
		if r.changes[call] && call != "Lock" {
			t.Errorf("%s was called: %v", call, r.made())
		}
	}
	if diff := cmp.Diff(before, f.document(t, "mnist")); diff != "" {
		t.Errorf("the document was changed (-before +after):\n%s", diff)
	}
	if len(f.locks) > 0 && f.locks[reconcile.GroupLock("mnist")].Who != "ada" {
		t.Errorf("the locks %v are still held", f.locks)
	}
}

// TestScaleAfterOthers: a count that somebody else has changed, or is about to change, is left alone.
func TestScaleAfterOthers(t *testing.T) {
	f := following(t, group(1, 2))
	before := f.document(t, "mnist")
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e, Controller: true}
	_, _, err := r.Scale(within(t), scaling(3, 4))
	count, is := errors.AsType[*reconcile.CountError](err)
	if !is || *count != (reconcile.CountError{Group: "mnist", Role: "worker", Expected: 3, Found: 2}) ||
		!strings.Contains(err.Error(), `role "worker" of group "mnist" now has a count of 2, not 3`) {
		t.Errorf("the error is %v", err)
	}
	calls.expectUnchanged(t, f, before)

	f.locks[reconcile.GroupLock("mnist")] = engine.Holder{Who: "ada", Process: 4711, Operation: "apply of group mnist"}
	calls.calls = nil
	_, _, err = r.Scale(within(t), scaling(2, 4))
	if locked, is := errors.AsType[*engine.LockedError](err); !is || locked.Holder.Who != "ada" {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff([]string{"Get group", "Lock"}, calls.made()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	calls.expectUnchanged(t, f, before)

	if _, _, err := r.Scale(within(t),
		reconcile.Scaling{Group: "other", Role: "worker"}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a group that is not there: %v", err)
	}
}

// TestScaleOnPausedHosts: hosts that keep their members don't prevent scaling.
func TestScaleOnPausedHosts(t *testing.T) {
	f := following(t, farm(2))
	f.inventory.Closed = map[string]string{"a": "host a is paused"}
	before := f.document(t, "mnist")
	done, short, err := reconcile.Reconciler{Engine: f, Controller: true}.Scale(within(t), scaling(2, 5))
	if err != nil || short != "" {
		t.Fatalf("short %q, %v", short, err)
	}
	f.expectScaled(t, before, done)
	for _, name := range []string{"mnist-worker-2", "mnist-worker-3", "mnist-worker-4"} {
		if host := f.document(t, "mnist").Assignments[name].Host; host != "b" {
			t.Errorf("%s is on host %s", name, host)
		}
	}
}

// TestScaleAsksForGPUsFirst: agents may be slow to answer, and nobody else should have to wait for that.
func TestScaleAsksForGPUsFirst(t *testing.T) {
	f := following(t, group(1, 1, onGPUs), withPool("GPU-a1", "GPU-a2"))
	// By now a foreign process uses the second device.
	busy := dgx()
	busy["a"].GPUs[2].Processes = []domain.GPUProcess{{PID: 4711, Command: "python"}}
	f.gpus = []map[string]domain.HostGPUs{busy}
	e, calls := recorded(f)
	_, short, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(within(t), scaling(1, 2))
	must(t, err)
	if want := "python (process 4711)"; !strings.Contains(short, want) {
		t.Errorf("what is in the way is %q, and does not say %q", short, want)
	}
	made := calls.made()
	locks := 0
	for _, call := range made[:slices.Index(made, "GPUs")] {
		if call == "Lock" {
			locks++
		}
	}
	if locks != 1 {
		t.Errorf("%d locks were held when the agents were asked: %v", locks, made)
	}

	boom := errors.New("no agent answers")
	calls.before = func(call string) error {
		if call == "GPUs" {
			return boom
		}
		return nil
	}
	before := f.document(t, "mnist")
	calls.calls = nil
	if _, _, err := (reconcile.Reconciler{Engine: e, Controller: true}).Scale(within(t),
		scaling(1, 2)); !errors.Is(err, boom) {
		t.Errorf("the error is %v", err)
	}
	calls.expectUnchanged(t, f, before)
}

// TestApplyWaitsForAScaling: an apply waits as long as members may take to end; the controller's other work goes on.
func TestApplyWaitsForAScaling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := role("worker", func(r *domain.Role) { r.GracePeriod = duration(10 * time.Minute) })
		f := following(t, group(1, 3, slow))
		e, calls := recorded(f)
		removed := make(chan struct{})
		calls.before = func(call string) error {
			if call == "Remove" {
				close(removed)
				<-time.After(9 * time.Minute)
			}
			return nil
		}
		scaled := make(chan error)
		go func() {
			_, _, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(t.Context(), scaling(3, 2))
			scaled <- err
		}()
		<-removed
		begun := time.Now()
		next, err := reconcile.Reconciler{Engine: f, Controller: true}.Keep(t.Context(), "mnist")
		if err != nil || time.Since(begun) > 0 || !next.After(begun) {
			t.Errorf("after %s the next look is at %s (%v)", time.Since(begun), next, err)
		}
		must(t, reconcile.Reconciler{Engine: f}.Update(t.Context(), group(1, 3, slow, undeclared, withAnother)))
		must(t, <-scaled)
		if waited := time.Since(begun); waited < 9*time.Minute {
			t.Errorf("the apply came after %s", waited)
		}
		if f.workers() != "0 1" || f.document(t, "mnist").Counts["worker"] != 2 {
			t.Errorf("the workers are %s, and %v are to be", f.workers(), f.document(t, "mnist").Counts)
		}
	})
}
