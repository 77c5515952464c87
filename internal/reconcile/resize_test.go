package reconcile_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// requesting sets the CPUs of each worker, with twice as many as the limit, and on_scale to none.
func requesting(cpus float64) func(g *domain.Group) {
	return role("worker", func(r *domain.Role) {
		r.Resources, r.OnScale = domain.ResourceRequirements{
			CPUs: cpus, MemoryMiB: 1000, Limits: domain.Resources{CPUs: 2 * cpus},
		}, domain.OnScaleNone
	})
}

// handsOver makes the engine take specifications without restarting members.
func handsOver(f *fake) { f.traits.HandsOver = true }

// resize changes the size of the workers.
func resize(t *testing.T, e engine.Engine, cpus float64, mib int64) error {
	t.Helper()
	return reconcile.Reconciler{Engine: e, Controller: true}.Resize(within(t), reconcile.Sizing{
		Group: "mnist", Role: "worker", To: domain.Resources{CPUs: cpus, MemoryMiB: mib}, At: epoch, Why: "busy",
	})
}

// sizes returns the requests and limits in the workers' specifications, by index.
func (f *fake) sizes() map[string]domain.ResourceRequirements {
	sizes := map[string]domain.ResourceRequirements{}
	for name, a := range f.cast() {
		if number, is := strings.CutPrefix(name, "mnist-worker-"); is {
			sizes[number] = a.spec.Resources
		}
	}
	return sizes
}

// expectNothingToDo fails if a plan would find a change.
func expectNothingToDo(t *testing.T, f *fake, when string) {
	t.Helper()
	g, err := reconcile.Reconciler{Engine: f}.Read(within(t), "mnist")
	must(t, err)
	if g.NeedsApply() || !g.Found().Spec.Equal(g.Document.Spec) {
		t.Errorf("%s: there is something to do: %+v", when, reconcile.Diff(g.Decision, g.Observed))
	}
}

func of(cpus, limit float64, mib int64) domain.ResourceRequirements {
	return domain.ResourceRequirements{
		CPUs: cpus, MemoryMiB: mib, Limits: domain.Resources{CPUs: limit, MemoryMiB: mib},
	}
}

// TestResize: a size is handed over without a restart if the engine can do that, and otherwise applies to members that
// start later. It is no drift, outlives other changes of the group, and gives way to a newly declared size.
func TestResize(t *testing.T) {
	for name, prepare := range map[string]func(
		f *fake,
	){"handed over": handsOver, "with the next start": func(*fake) {}} {
		t.Run(name, func(t *testing.T) {
			spec := group(1, 2, requesting(1))
			f := following(t, spec, prepare)
			undeclared(&spec)
			r := reconcile.Reconciler{Engine: f, Controller: true}
			expect := func(when string, want map[string]domain.ResourceRequirements) {
				t.Helper()
				if diff := cmp.Diff(want, f.sizes()); diff != "" {
					t.Errorf("%s (-want +got)\n%s", when, diff)
				}
				expectNothingToDo(t, f, when)
			}
			declared, sized := of(1, 2, 1000), of(3, 6, 2000)
			first := declared
			if f.traits.HandsOver {
				first = sized
			}
			must(t, resize(t, f, 3, 2000))
			expect("after it", map[string]domain.ResourceRequirements{"0": first, "1": first})
			if restarted := f.restarted(); restarted != "" {
				t.Errorf("started again are %s", restarted)
			}

			if _, short, err := r.Scale(within(t), scaling(2, 3)); err != nil || short != "" {
				t.Fatalf("%v, short %q", err, short)
			}
			expect("with one more", map[string]domain.ResourceRequirements{"0": first, "1": first, "2": sized})
			must(t, r.Update(within(t), spec))
			expect("after an apply without a change",
				map[string]domain.ResourceRequirements{"0": first, "1": first, "2": sized})

			changed := spec
			changed.Env = map[string]string{"CHANGED": "1"}
			must(t, r.Update(within(t), changed))
			expect("after a change of the group",
				map[string]domain.ResourceRequirements{"0": sized, "1": sized, "2": sized})

			changed.Roles = maps.Clone(changed.Roles)
			worker := changed.Roles["worker"]
			worker.Resources.MemoryMiB = 4000
			changed.Roles["worker"] = worker
			must(t, r.Update(within(t), changed))
			anew := of(3, 6, 4000)
			expect("after memory was declared anew",
				map[string]domain.ResourceRequirements{"0": anew, "1": anew, "2": anew})

			must(t, resize(t, f, 0, 0))
			last := anew
			if f.traits.HandsOver {
				last = of(1, 2, 4000)
			}
			expect("after the policy", map[string]domain.ResourceRequirements{"0": last, "1": last, "2": last})
			if doc := f.document(t, "mnist"); len(doc.Sizes) > 0 {
				t.Errorf("the sizes are %+v", doc.Sizes)
			}
			must(t, resize(t, f, 0, 0))
		})
	}
}

// TestResizeRoom: members whose hosts have no room for a size keep their own, and new members are
// placed by the stored size.
func TestResizeRoom(t *testing.T) {
	f := following(t, group(1, 2, requesting(20)), handsOver)
	var refused *reconcile.HeldError
	for _, cpus := range []float64{100, 65} {
		if err := resize(t, f, cpus, 0); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "no room for that") {
			t.Errorf("%v processors of 64: %v", cpus, err)
		}
	}
	if doc := f.document(t, "mnist"); len(doc.Sizes) > 0 || slices.Collect(maps.Values(f.sizes()))[0].CPUs != 20 {
		t.Errorf("it has sizes %+v all the same, and members %+v", doc.Sizes, f.sizes())
	}
	must(t, resize(t, f, 60, 0))
	other := group(0, 1, framework("none"), role("worker", func(r *domain.Role) { r.Resources.CPUs = 10 }))
	other.Name, other.Roles = "other", map[string]domain.Role{"worker": other.Roles["worker"]}
	if err := (reconcile.Reconciler{Engine: f}).Update(within(t), other); err == nil ||
		!strings.Contains(err.Error(), "10 CPUs") {
		t.Errorf("beside members that have grown: %v", err)
	}
	must(t, resize(t, f, 40, 0))
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), other))
}

// TestResizeHeld: while an apply holds the group, or an interrupted one has yet to be finished, only the
// declared size is possible.
func TestResizeHeld(t *testing.T) {
	f := following(t, group(1, 2, requesting(1)), handsOver)
	must(t, resize(t, f, 3, 2000))
	doc := f.document(t, "mnist")
	doc.Applying = true
	set(f, doc)
	var held *reconcile.HeldError
	if err := resize(t, f, 4, 2000); !errors.As(err, &held) {
		t.Errorf("of an apply that was cut short: %v", err)
	}
	if f.document(t, "mnist").Sizes["worker"].CPUs != 3 {
		t.Errorf("the size is %+v", f.document(t, "mnist").Sizes)
	}
	must(t, resize(t, f, 0, 0))
	if doc := f.document(t, "mnist"); len(doc.Sizes) > 0 || !doc.Applying {
		t.Errorf("it is %+v", doc)
	}
	f.locks[reconcile.GroupLock("mnist")] = engine.Holder{
		Who: "somebody", Process: 1, Operation: "apply", Since: time.Now(),
	}
	var locked *engine.LockedError
	if err := resize(t, f, 4, 2000); !errors.As(err, &locked) {
		t.Errorf("of an apply: %v", err)
	}
}

// TestResizeDiesBetweenCalls: if a controller dies between storing a size and handing it over,
// the next one hands it over.
func TestResizeDiesBetweenCalls(t *testing.T) {
	for _, call := range []string{"Stage", "Start"} {
		f := following(t, group(1, 2, requesting(1)), handsOver)
		e, calls := recorded(f)
		dead := errors.New("dead")
		calls.before = func(made string) error {
			if made == call {
				return dead
			}
			return nil
		}
		if err := resize(t, e, 3, 2000); !errors.Is(err, dead) {
			t.Fatalf("%s: %v", call, err)
		}
		expectNothingToDo(t, f, call)
		must(t, resize(t, f, 3, 2000))
		if got := f.sizes(); got["0"] != of(3, 6, 2000) || got["1"] != of(3, 6, 2000) || f.restarted() != "" {
			t.Errorf("%s: the members have %+v, and started again are %q", call, got, f.restarted())
		}
	}
}

// TestEndPolicyEndsSize: after its policy is removed, members start with the declared size.
func TestEndPolicyEndsSize(t *testing.T) {
	f := following(t, group(1, 2, requesting(1)), handsOver)
	r := reconcile.Reconciler{Engine: f}
	_, err := r.PutPolicy(within(t), policy(), true)
	must(t, err)
	must(t, resize(t, f, 3, 2000))
	left, err := r.EndPolicy(within(t), "mnist", "worker")
	if err != nil || left != "" {
		t.Fatalf("%v, left %q", err, left)
	}
	if doc := f.document(t, "mnist"); len(doc.Sizes) > 0 || f.sizes()["0"] != of(1, 2, 1000) {
		t.Errorf("the sizes are %+v, and members have %+v", doc.Sizes, f.sizes())
	}
}
