package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestWaitForCompletion: the apply ends when the chief, worker 0, has completed and the rest is stopped.
func TestWaitForCompletion(t *testing.T) {
	for name, chief := range map[string]play{
		"after a while": {runs, waits, waits, exits(0)},
		"at once":       {exits(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.resident(t)
			f.plays["mnist-worker-0"] = []play{chief}
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 2, waitForCompletion)))
			f.expectStates(t, "mnist-ps-0 (stopped)", "mnist-worker-0 (completed)", "mnist-worker-1 (stopped)")
			if f.document(t, "mnist").Applying {
				t.Error("the document says that the apply did not end well")
			}
		})
	}
}

// TestCompletedWhileStarting: members that have already completed satisfy an apply that waits for them to run.
func TestCompletedWhileStarting(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-0"] = []play{{exits(0)}}
	f.plays["mnist-ps-0"] = []play{{waits, waits, waits, waits, runs}}
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 1)))
}

func TestWaitForCompletionFails(t *testing.T) {
	for name, c := range map[string]struct {
		plays  map[string][]play
		change func(g *domain.Group)
		want   string
	}{
		"a member fails": {
			map[string][]play{"mnist-worker-0": {{runs, waits, waits, exits(127)}}}, func(*domain.Group) {},
			"member mnist-worker-0 on host b: exit code 127, which is final",
		},
		"the deadline passes": {
			nil, func(g *domain.Group) { g.Completion.Deadline = duration(time.Hour) },
			`group "mnist" failed: not completed within its deadline of 1h0m0s`,
		},
		"the group's attempts are used up": {
			map[string][]play{"mnist-worker-0": {{runs, waits, waits, exits(137)}}},
			func(g *domain.Group) {
				asAWhole(g)
				role("worker", func(r *domain.Role) { r.Restart.MaxAttempts = new(2) })(g)
			},
			"member mnist-worker-0 on host b: exit code 137",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.resident(t)
			f.plays = c.plays
			err := reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 1, waitForCompletion, c.change))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, and does not say %q", err, c.want)
			}
		})
	}
}

// TestGroupRestart: a worker fails once, and the group restarts as a whole while the apply waits for its completion.
func TestGroupRestart(t *testing.T) {
	for name, c := range map[string]struct{ first play }{
		"while it runs":   {play{runs, waits, waits, exits(137)}},
		"while it starts": {play{exits(137)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.resident(t)
			f.plays["mnist-worker-1"] = []play{c.first, {runs}}
			f.plays["mnist-worker-0"] = []play{{runs}, {runs, waits, waits, waits, exits(0)}}
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 2, waitForCompletion, asAWhole)))
			doc := f.document(t, "mnist")
			if doc.GroupRestarts != 1 || doc.StartedAt == nil || !doc.StartedAt.Equal(epoch) || doc.Applying {
				t.Errorf("the document is %+v", doc)
			}
			for name, a := range f.cast() {
				if a.runs != 2 || a.observed.Run != doc.MinRun {
					t.Errorf("%s was started %d times, in run %d of %d", name, a.runs, a.observed.Run, doc.MinRun)
				}
			}
		})
	}
}

// TestFollowsALaterApply: an apply that waits for completion follows what a later apply makes of the group.
func TestFollowsALaterApply(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-0"] = []play{{runs}, {exits(0)}}
	e, calls := recorded(f)
	puts := 0
	calls.before = func(call string) error {
		if call == "Put group" {
			puts++
		}
		if call == "Watch" && puts == 2 { // the first apply starts to wait for completion
			calls.before = nil
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 1, untilTheChiefEnds, withAnother)))
		}
		return nil
	}
	must(t, reconcile.Reconciler{Engine: e}.Update(within(t), group(1, 1, waitForCompletion, untilTheChiefEnds)))
	if runs := f.cast()["mnist-worker-0"].runs; runs != 2 {
		t.Errorf("worker 0 was started %d times", runs)
	}
}

func withAnother(g *domain.Group) { g.Command = []string{"another"} }

func untilTheChiefEnds(g *domain.Group) { g.Completion.StopRest = new(false) }

// TestRerun: a group that has ended, in whatever way, runs again as a whole if any member has to start; changes that
// affect no member leave it ended.
func TestRerun(t *testing.T) {
	for name, c := range map[string]struct {
		chief play
		after domain.Group
		want  []string
	}{
		"completed, and changed": {
			play{runs, exits(0)}, group(1, 2),
			[]string{"mnist-ps-0 (running)", "mnist-worker-0 (running)", "mnist-worker-1 (running)"},
		},
		"completed, and triggered": {
			play{runs, exits(0)}, group(1, 1, trigger("v2")),
			[]string{"mnist-ps-0 (running)", "mnist-worker-0 (running)"},
		},
		"completed, one role changed": {
			play{runs, exits(0)}, group(1, 1, role("worker", func(r *domain.Role) { r.Resources.CPUs = 1 })),
			[]string{"mnist-ps-0 (running)", "mnist-worker-0 (running)"},
		},
		"failed, and changed": {
			play{runs, exits(127)}, group(1, 1, role("ps", func(r *domain.Role) { r.Resources.CPUs = 1 })),
			[]string{"mnist-ps-0 (running)", "mnist-worker-0 (running)"},
		},
		"completed, and not changed": {
			play{runs, exits(0)}, group(1, 1), []string{"mnist-ps-0 (stopped)", "mnist-worker-0 (completed)"},
		},
		"completed, with a rule that is not met": {
			play{runs, exits(0)}, group(1, 1, func(g *domain.Group) { g.Completion.When = domain.WhenNever }),
			[]string{"mnist-ps-0 (running)", "mnist-worker-0 (running)"},
		},
		"completed, with another rule": {
			play{runs, exits(0)}, group(1, 1, func(g *domain.Group) { g.Completion.When = domain.WhenAll }),
			[]string{"mnist-ps-0 (stopped)", "mnist-worker-0 (completed)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.plays["mnist-worker-0"] = []play{c.chief, {runs}}
			r := reconcile.Reconciler{Engine: f}
			must(t, r.Update(within(t), group(1, 1)))
			_, err := f.Observe(t.Context(), "") // the chief ends
			must(t, err)
			_, err = r.Keep(t.Context(), "mnist")
			must(t, err)
			ended := f.document(t, "mnist")

			must(t, r.Update(within(t), c.after))
			f.expectStates(t, c.want...)
			doc, reran := f.document(t, "mnist"), c.want[0] == "mnist-ps-0 (running)"
			if got := doc.MinRun > ended.MinRun; got != reran {
				t.Errorf("members have to run since run %d, and had since run %d", doc.MinRun, ended.MinRun)
			}
		})
	}
}

// kept returns an engine on which the group runs, after change.
func kept(t *testing.T, spec domain.Group, change func(f *fake)) *fake {
	t.Helper()
	f, _ := applied(t, spec)
	change(f)
	return f
}

func TestKeepStops(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fake)
		want   []string
		reason domain.StopReason
	}{
		"the rest of a completed group": {
			func(f *fake) { f.put("mnist-worker-0", func(o *domain.Observed) { o.State = domain.StateCompleted }) },
			[]string{"mnist-ps-0 (stopped)", "mnist-worker-0 (completed)", "mnist-worker-1 (stopped)"},
			domain.StopCompleted,
		},
		"the rest of a failed group": {
			func(f *fake) { f.put("mnist-worker-0", func(o *domain.Observed) { fail(o, 3, 0) }) },
			[]string{"mnist-ps-0 (stopped)", "mnist-worker-0 (failed)", "mnist-worker-1 (stopped)"}, domain.StopFailed,
		},
		"all of a group past its deadline": {
			func(*fake) {},
			[]string{"mnist-ps-0 (stopped)", "mnist-worker-0 (stopped)", "mnist-worker-1 (stopped)"},
			domain.StopDeadline,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := kept(t, group(1, 2, func(g *domain.Group) { g.Completion.Deadline = duration(time.Hour) }), c.change)
			next, err := reconcile.Reconciler{Engine: f, Controller: true}.Keep(t.Context(), "mnist")
			if err != nil || !next.IsZero() {
				t.Errorf("the next look is at %s (%v)", next, err)
			}
			f.expectStates(t, c.want...)
			if got := f.look("mnist")[0].StopReason; got != c.reason {
				t.Errorf("the reason is %q, not %q", got, c.reason)
			}
			if len(f.locks) > 0 {
				t.Errorf("the locks %v are still held", f.locks)
			}
		})
	}
}

// TestStopsNobodyOfAnotherRun: a controller that is delayed between observing a group and stopping the rest of it stops
// no member that an apply has started meanwhile.
func TestStopsNobodyOfAnotherRun(t *testing.T) {
	f := kept(t, group(1, 2), func(f *fake) {
		f.put("mnist-worker-0", func(o *domain.Observed) { o.State = domain.StateCompleted })
	})
	var heldUp bool
	controller := engine.Intercept(f, func(_ context.Context, call engine.Call, do func() error) error {
		if call.Name == "Stop" {
			heldUp = true
			clear(f.locks) // its lease has expired
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 2, trigger("v2"))))
		}
		return do()
	})
	_, err := reconcile.Reconciler{Engine: controller, Controller: true}.Keep(t.Context(), "mnist")
	if !heldUp {
		t.Fatalf("nobody was to be stopped (%v)", err)
	}
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)", "mnist-worker-1 (running)")
}

// TestRerunAfterAnotherTry: an apply starts members that were stopped with their failed group, even if the
// failed one runs once more.
func TestRerunAfterAnotherTry(t *testing.T) {
	f := kept(t, group(1, 2), func(f *fake) {
		f.put("mnist-worker-0", func(o *domain.Observed) { fail(o, 3, 0) })
	})
	_, err := reconcile.Reconciler{Engine: f, Controller: true}.Keep(t.Context(), "mnist")
	must(t, err)
	f.expectStates(t, "mnist-ps-0 (stopped)", "mnist-worker-0 (failed)", "mnist-worker-1 (stopped)")
	f.put("mnist-worker-0",
		func(o *domain.Observed) { o.State, o.ExitCode, o.LastError = domain.StateRunning, nil, "" })
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 2)))
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)", "mnist-worker-1 (running)")
}

// TestKeepDiesBetweenCalls: the controller dies after each of its calls in turn while it restarts a group as a whole.
// The next one finishes that, and no member restarts twice.
func TestKeepDiesBetweenCalls(t *testing.T) {
	for k := range 100 {
		f := kept(t, group(1, 2, asAWhole), func(f *fake) {
			f.put("mnist-worker-1", func(o *domain.Observed) { fail(o, 137, 0) })
		})
		mortal := enginetest.NewMortal(f, k)
		_, err := reconcile.Reconciler{Engine: mortal, Controller: true}.Keep(t.Context(), "mnist")
		if err != nil && !errors.Is(err, enginetest.ErrDead) {
			t.Fatalf("after %d calls %v: %v", k, mortal.Calls(), err)
		}
		r := reconcile.Reconciler{Engine: f, Controller: true}
		for range 10 {
			pending, err := r.Pending(t.Context(), time.Now())
			must(t, err)
			for _, p := range pending {
				_, err := r.Keep(t.Context(), p.Group)
				must(t, err)
			}
		}
		doc := f.document(t, "mnist")
		for name, a := range f.cast() {
			if a.runs != 2 || a.observed.State != domain.StateRunning || a.observed.Run < doc.MinRun ||
				doc.GroupRestarts != 1 {
				t.Errorf("after a death at call %d %v: %s was started %d times, and is %s in run %d of %d; the group was restarted %d times",
					k, mortal.Calls(), name, a.runs, a.observed.State, a.observed.Run, doc.MinRun, doc.GroupRestarts)
			}
		}
		if err == nil {
			return
		}
	}
	t.Fatal("a restart of a group takes more than 100 calls")
}

func TestKeepLeavesAlone(t *testing.T) {
	holder := engine.Holder{Who: "ada", Process: 4711, Operation: "apply of group mnist"}
	for name, c := range map[string]struct {
		change func(f *fake)
		calls  []string
		again  bool
	}{
		"a group that runs": {
			func(*fake) {}, []string{"Lock", "Get group", "Get cluster", "Observe"}, false,
		},
		"a group that is gone": {
			func(f *fake) { drop[domain.GroupDocument](f) }, []string{"Lock", "Get group"}, false,
		},
		"a group that is being worked with": {
			func(f *fake) { f.locks[reconcile.GroupLock("mnist")] = holder }, []string{"Lock"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := kept(t, group(1, 2), c.change)
			e, calls := recorded(f)
			next, err := reconcile.Reconciler{Engine: e, Controller: true}.Keep(t.Context(), "mnist")
			must(t, err)
			if next.IsZero() == c.again {
				t.Errorf("the next look is at %s", next)
			}
			if diff := cmp.Diff(c.calls, calls.made()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeepSaysWhoItIs: an apply waits for the controller's lock, and for no other.
func TestKeepSaysWhoItIs(t *testing.T) {
	f := kept(t, group(1, 1), func(*fake) {})
	for _, controller := range []bool{true, false} {
		e, calls := recorded(f)
		calls.before = func(call string) error {
			if held := f.locks[reconcile.GroupLock("mnist")]; call == "Get group" &&
				(held.Controller != controller || held.Process == 0 || !strings.Contains(held.Who, "@")) {
				t.Errorf("the lock of a reconciler with Controller %v is held by %+v", controller, held)
			}
			return nil
		}
		_, err := reconcile.Reconciler{Engine: e, Controller: controller}.Keep(t.Context(), "mnist")
		must(t, err)
	}
}

func TestPending(t *testing.T) {
	f := newFake()
	r := reconcile.Reconciler{Engine: f}
	pending, err := r.Pending(t.Context(), epoch)
	if len(pending) > 0 || err != nil {
		t.Errorf("without groups there is %v to do (%v)", pending, err)
	}
	named := func(name string, changes ...func(g *domain.Group)) domain.Group {
		return group(1, 1, append(changes, func(g *domain.Group) { g.Name = name })...)
	}
	for _, spec := range []domain.Group{
		named("idle"), named("timed", func(g *domain.Group) { g.Completion.Deadline = duration(time.Hour) }),
		named("done"), named("broken", asAWhole),
	} {
		must(t, r.Update(within(t), spec))
	}
	f.put("done-worker-0", func(o *domain.Observed) { o.State = domain.StateCompleted })
	f.put("broken-worker-0", func(o *domain.Observed) { fail(o, 137, 0) })
	now := epoch.Add(time.Minute)
	pending, err = r.Pending(t.Context(), now)
	must(t, err)
	want := []reconcile.Due{
		{Group: "broken", Due: now}, {Group: "done", Due: now}, {Group: "timed", Due: epoch.Add(time.Hour)},
	}
	if diff := cmp.Diff(want, pending); diff != "" {
		t.Errorf("what is to be done (-want +got):\n%s", diff)
	}
}
