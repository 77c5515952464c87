package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestScaleDies: the controller dies after each of its calls while it scales a group out and in. The next one finishes
// that, as does an apply, and nothing is left over. A scaling that was not stored yet does not happen.
func TestScaleDies(t *testing.T) {
	inPeace := role("worker", func(r *domain.Role) { r.OnScale = domain.OnScaleNone })
	for name, c := range map[string]struct {
		spec  domain.Group
		scale reconcile.Scaling
		want  string
		// starts is how often other members are started in total.
		starts int
	}{
		"out":             {group(1, 2), scaling(2, 4), "0 1 2 3", 2},
		"in":              {group(1, 4), scaling(4, 2), "0 1", 2},
		"out in peace":    {group(1, 2, inPeace), scaling(2, 4), "0 1 2 3", 1},
		"interchangeable": {farm(4), scaling(4, 2, "mnist-worker-0", "mnist-worker-2"), "1 3", 1},
		"with devices":    {farm(1, onGPUs), scaling(1, 3), "0 1 2", 1},
	} {
		for _, by := range []string{"the controller", "an apply", "another scaling"} {
			t.Run(name+", finished by "+by, func(t *testing.T) {
				t.Parallel()
				for k := 0; ; k++ {
					if k == 100 {
						t.Fatal("a scaling takes more than 100 calls")
					}
					f := following(t, c.spec, withPool("GPU-a1", "GPU-a2", "GPU-a3"))
					before := f.document(t, "mnist")
					mortal := enginetest.NewMortal(f, k)
					_, _, err := reconcile.Reconciler{Engine: mortal, Controller: true}.Scale(t.Context(), c.scale)
					if err != nil && !errors.Is(err, enginetest.ErrDead) {
						t.Fatalf("after %d calls %v: %v", k, mortal.Calls(), err)
					}
					decided := f.document(t, "mnist").Counts["worker"] == c.scale.To
					done := domain.Scaled{At: epoch, From: c.scale.From, To: c.scale.To, Why: "busy"}
					r := reconcile.Reconciler{Engine: f, Controller: true}
					switch by {
					case "an apply":
						must(t, reconcile.Reconciler{Engine: f}.Update(within(t), before.Spec))
					case "another scaling":
						if _, _, err := r.Scale(within(t), reconcile.Scaling{
							Group: "mnist", Role: "worker", From: c.scale.To, To: c.scale.To,
						}); decided && err != nil {
							t.Fatal(err)
						}
					}
					f.keepAll(t)
					if !decided {
						if diff := cmp.Diff(before, f.document(t, "mnist")); diff != "" && by != "an apply" ||
							f.restarted() != "" {
							t.Errorf("after %d calls %v the document is another one (-before +after):\n%s", k,
								mortal.Calls(), diff)
						}
						continue
					}
					if f.workers() != c.want {
						t.Fatalf("after %d calls %v the workers are %s, want %s", k, mortal.Calls(), f.workers(),
							c.want)
					}
					f.expectScaled(t, before, done)
					for member, a := range f.cast() {
						if _, was := before.Assignments[member]; was && a.runs != c.starts {
							t.Errorf("after %d calls %v %s was started %d times", k, mortal.Calls(), member, a.runs)
						}
					}
					if err == nil {
						return
					}
				}
			})
		}
	}
}

// keepAll acts as a controller until there is nothing left to do.
func (f *fake) keepAll(t *testing.T) {
	t.Helper()
	r := reconcile.Reconciler{Engine: f, Controller: true}
	for range 20 {
		pending, err := r.Pending(t.Context(), time.Now())
		must(t, err)
		if len(pending) == 0 {
			return
		}
		for _, p := range pending {
			_, err := r.Keep(t.Context(), p.Group)
			must(t, err)
		}
	}
	t.Errorf("there is something to be done for ever: %+v", f.document(t, "mnist"))
}
