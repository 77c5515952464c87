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

// onePooled is [pooled] with a single worker.
func onePooled(name string) domain.Group {
	spec := pooled(name)
	role("worker", func(r *domain.Role) { r.Replicas = new(1) })(&spec)
	return spec
}

// groupTakes reports whether another group gets a GPU.
func groupTakes(t *testing.T, f *fake) bool {
	t.Helper()
	err := reconcile.Reconciler{Engine: f}.Update(within(t), onePooled("other"))
	if err != nil && !strings.Contains(err.Error(), "Not enough GPUs") {
		t.Error(err)
	}
	return err == nil
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
		"a group": groupTakes,
		"runs": func(t *testing.T, f *fake) bool {
			return slices.Contains(startRuns(t, reconcile.Reconciler{Engine: f, Controller: true}, "lr"), "r0")
		},
	}
	renamed := onePooled("mnist")
	renamed.Roles = map[string]domain.Role{"trainer": renamed.Roles["worker"]}
	renamed.Framework = "none"
	goesBack := pooled("mnist")
	role("worker", func(r *domain.Role) { r.Update.OnFailure = domain.UpdateRollback })(&goesBack)
	for name, test := range map[string]struct {
		before, after domain.Group
		dies          bool
		plays         map[string][]play
	}{
		"shrinks":               {before: pooled("mnist"), after: onePooled("mnist")},
		"dies while it shrinks": {before: pooled("mnist"), after: onePooled("mnist"), dies: true},
		"renames a role":        {before: pooled("mnist"), after: renamed},
		"rolls back": {
			before: onePooled("mnist"), after: goesBack,
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
	one := onePooled("mnist")
	one.Env = map[string]string{"RATE": "1"}
	var failure *reconcile.MemberError
	if err := r.Update(within(t), one); !errors.As(err, &failure) {
		t.Fatalf("its worker fails: %v", err)
	}
	must(t, r.Update(within(t), onePooled("other")))
}

// A controller that restarts a group removes what a dead apply did not, and frees its GPU.
func TestGPUsOfMembersThatControllerRemoves(t *testing.T) {
	f := newFake()
	f.traits.MemberAddress = addressed
	withPool("GPU-a4", "GPU-a5")(f)
	r := reconcile.Reconciler{Engine: f}
	two, one := pooled("mnist"), onePooled("mnist")
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
	must(t, r.Update(within(t), onePooled("other")))
}

// Neither groups nor policies get the GPU of a run whose member has yet to end, whatever became of the run.
func TestGPUsOfLeavingRuns(t *testing.T) {
	type ends func(doc domain.SweepDocument, own domain.RunSpec, run domain.Run) domain.Run
	outdated := func(doc domain.SweepDocument, own domain.RunSpec, run domain.Run) domain.Run {
		return sweep.Outdated(doc, own, run, epoch)
	}
	lost := func(_ domain.SweepDocument, _ domain.RunSpec, run domain.Run) domain.Run {
		return sweep.Lost(run, "host a is down", epoch)
	}
	cancelled := func(doc domain.SweepDocument, own domain.RunSpec, run domain.Run) domain.Run {
		return sweep.Cancelled(doc, own, run, "cancelled by ada", epoch)
	}
	removed := func(_ domain.SweepDocument, _ domain.RunSpec, run domain.Run) domain.Run {
		return sweep.Removed(run, epoch)
	}
	takers := map[string]func(t *testing.T, f *fake) (taken bool){
		"a group": groupTakes,
		"a policy": func(t *testing.T, f *fake) bool {
			done, _, err := reconcile.Reconciler{Engine: f}.Scale(within(t), scaling(1, 2))
			must(t, err)
			return done.To == 2
		},
		"a member whose host is lost": func(t *testing.T, f *fake) bool {
			f.lose(f.document(t, "mnist").Assignments["mnist-worker-0"].Host)
			_, err := reconcile.Reconciler{Engine: f, Controller: true}.Keep(within(t), "mnist")
			if _, unplaced := errors.AsType[*reconcile.UnplacedError](err); err != nil && !unplaced {
				t.Error(err)
			}
			return err == nil
		},
	}
	for name, test := range map[string]struct {
		key   string
		state domain.RunState
		ends  ends
		// over is set if its member has ended, but is still there.
		over bool
	}{
		"cancelled":              {key: "r0", ends: cancelled},
		"outdated":               {key: "r0", ends: outdated},
		"paused, then lost":      {key: "r0", state: domain.RunPaused, ends: lost},
		"taken out of its sweep": {key: "gone", ends: removed},
		"cancelled, and ended":   {key: "r0", ends: cancelled, over: true},
	} {
		for by, take := range takers {
			t.Run(name+", and "+by+" would take it", func(t *testing.T) {
				f := newFake()
				f.traits.MemberAddress = addressed
				f.gpus = []map[string]domain.HostGPUs{dgx()}
				r := reconcile.Reconciler{Engine: f}
				putPool(t, r, domain.GPUPool{
					Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {"GPU-a4"}, "b": {"GPU-b0"}},
				}, true)
				mnist := onePooled("mnist")
				must(t, r.Update(within(t), mnist))
				undeclared(&mnist)
				must(t, r.Update(within(t), mnist))
				_, err := r.PutSweep(within(t), runsOnGPUs("lr", "r0"), true)
				must(t, err)

				at := domain.Assignment{Host: "a", Port: 20_000, GPUs: "GPU-a4"}
				if f.document(t, "mnist").Assignments["mnist-worker-0"].Host == "a" {
					at.Host, at.GPUs = "b", "GPU-b0"
				}
				doc, own := documents[domain.SweepDocument](f)["lr"], domain.RunSpec{Key: test.key}
				run := sweep.Start(doc, own, domain.Run{}, at, 1, epoch)
				if test.state != "" {
					run.State = test.state
				}
				set(f, domain.SweepRecord{
					Header: domain.Header{Revision: 1}, Sweep: "lr", Part: "0", ID: doc.ID,
					Runs: map[string]domain.Run{test.key: test.ends(doc, own, run)},
				})
				o := domain.Observed{
					Name: domain.RunName("lr", test.key), Group: "lr", Role: test.key, Host: at.Host, Run: 1,
					State: domain.StateRunning,
				}
				if test.over {
					o.State = domain.StateStopped
				}
				f.members[o.Name] = &actor{observed: o}

				if taken := take(t, f); taken != test.over {
					t.Fatalf("it is taken: %t", taken)
				}
				delete(f.members, o.Name)
				if !test.over && !take(t, f) {
					t.Error("it can't be taken once its member is gone")
				}
			})
		}
	}
}
