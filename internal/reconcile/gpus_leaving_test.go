package reconcile_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// pooledOf is [pooled] with this many workers.
func pooledOf(name string, workers int) domain.Group {
	spec := pooled(name)
	role("worker", func(r *domain.Role) { r.Replicas = &workers })(&spec)
	return spec
}

// runsOnGPUs is a sweep of runs with a device of the pool "p" each.
func runsOnGPUs(name string, keys ...string) domain.Sweep {
	s := domain.Sweep{
		Cluster: "lab", Name: name, Template: domain.Template{Command: []string{"train"}},
		GPUs: &domain.GPURequest{Pool: "p"}, Runs: map[string]map[string]string{},
	}
	for _, key := range keys {
		s.Runs[key] = nil
	}
	return s
}

// startRuns starts the waiting runs of a sweep, and returns the keys of those that have started.
func startRuns(t *testing.T, r reconcile.Reconciler, name string) (started []string) {
	t.Helper()
	found, err := r.SweepRuns(within(t), name)
	must(t, err)
	queue := sweep.Queue{Document: found.Document, Spec: found.Spec, Keys: found.Spec.Keys(), Runs: found.Runs}
	admission, _, err := r.StartRuns(within(t), []sweep.Queue{queue}, noKeeper{})
	must(t, err)
	for _, s := range admission.Starts {
		started = append(started, s.Key)
	}
	return started
}

// Whoever asks for a GPU gets none of a member that is being removed, even if the apply that removes it dies.
func TestGPUsOfLeavingMembers(t *testing.T) {
	errDead := errors.New("dead")
	takers := map[string]func(t *testing.T, f *fake) (taken bool){
		"a group": func(t *testing.T, f *fake) bool {
			err := reconcile.Reconciler{Engine: f}.Update(within(t), pooledOf("other", 1))
			if err != nil && !strings.Contains(err.Error(), "Not enough GPUs") {
				t.Error(err)
			}
			return err == nil
		},
		"runs": func(t *testing.T, f *fake) bool {
			return slices.Contains(startRuns(t, reconcile.Reconciler{Engine: f, Controller: true}, "lr"), "r0")
		},
	}
	renamed := pooledOf("mnist", 1)
	renamed.Roles = map[string]domain.Role{"trainer": renamed.Roles["worker"]}
	renamed.Framework = "none"
	goesBack := pooled("mnist")
	role("worker", func(r *domain.Role) { r.Update.OnFailure = domain.UpdateRollback })(&goesBack)
	for name, test := range map[string]struct {
		before, after domain.Group
		dies          bool
		plays         map[string][]play
	}{
		"shrinks":               {before: pooled("mnist"), after: pooledOf("mnist", 1)},
		"dies while it shrinks": {before: pooled("mnist"), after: pooledOf("mnist", 1), dies: true},
		"renames a role":        {before: pooled("mnist"), after: renamed},
		"rolls back": {
			before: pooledOf("mnist", 1), after: goesBack,
			plays: map[string][]play{"mnist-worker-1": {{cannotStart(1)}}},
		},
	} {
		for by, take := range takers {
			t.Run(name+", and "+by+" would take it", func(t *testing.T) {
				f := newFake()
				f.traits.MemberAddress = addressed
				withPool("GPU-a4", "GPU-a5")(f)
				r := reconcile.Reconciler{Engine: f}
				_, err := r.PutSweep(within(t), runsOnGPUs("lr", "r0"), true)
				must(t, err)
				must(t, r.Update(within(t), test.before))
				maps.Copy(f.plays, test.plays)

				e, calls := recorded(f)
				asked := false
				calls.before = func(call string) error {
					if call != "Remove" || asked {
						return nil
					}
					asked = true
					if test.dies {
						return errDead
					}
					if take(t, f) {
						t.Error("it was taken before its member was gone")
					}
					return nil
				}
				err = reconcile.Reconciler{Engine: e}.Update(within(t), test.after)
				_, back := errors.AsType[*reconcile.RolledBackError](err)
				if !asked || test.dies != errors.Is(err, errDead) || back != (test.plays != nil) ||
					!test.dies && !back && err != nil {
					t.Fatalf("the apply made the calls %v: %v", calls.made(), err)
				}
				if test.dies {
					if take(t, f) {
						t.Error("it was taken from a member that an apply did not get to remove")
					}
					must(t, r.Update(within(t), test.after))
				}
				if n := len(f.document(t, "mnist").Assignments); n != 1 {
					t.Errorf("in the end, there are %d assignments", n)
				}
				if !take(t, f) {
					t.Error("it can't be taken once its member is gone")
				}
			})
		}
	}
}

// If members fail after others were removed, the GPUs of those are free.
func TestGPUsOfRemovedMembersOfFailedApply(t *testing.T) {
	f := newFake()
	f.traits.MemberAddress = addressed
	withPool("GPU-a4", "GPU-a5")(f)
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), pooled("mnist")))
	f.plays["mnist-worker-0"] = []play{{cannotStart(1)}}
	one := pooledOf("mnist", 1)
	one.Env = map[string]string{"RATE": "1"}
	var failure *reconcile.MemberError
	if err := r.Update(within(t), one); !errors.As(err, &failure) {
		t.Fatalf("its worker fails: %v", err)
	}
	must(t, r.Update(within(t), pooledOf("other", 1)))
}

// A controller that restarts a group removes what a dead apply did not, and frees its GPU.
func TestGPUsOfMembersThatControllerRemoves(t *testing.T) {
	f := newFake()
	f.traits.MemberAddress = addressed
	withPool("GPU-a4", "GPU-a5")(f)
	r := reconcile.Reconciler{Engine: f}
	two, one := pooled("mnist"), pooledOf("mnist", 1)
	asAWhole(&two)
	asAWhole(&one)
	must(t, r.Update(within(t), two))
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if call == "Remove" {
			return errors.New("dead")
		}
		return nil
	}
	if err := (reconcile.Reconciler{Engine: e}).Update(within(t), one); err == nil {
		t.Fatal("the apply did not die")
	}
	f.put("mnist-worker-0", func(o *domain.Observed) { fail(o, 1, 0) })
	f.keepAll(t)
	must(t, r.Update(within(t), pooledOf("other", 1)))
}
