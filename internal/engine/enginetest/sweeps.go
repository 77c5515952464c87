package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// testSweep has the cluster's controller run sweeps to their end.
func testSweep(t *testing.T, h Harness) {
	e := h.cluster(t)
	number := 0
	try := func(name string, test func(t *testing.T, h Harness, e engine.Engine)) {
		number++
		own := h
		own.group = fmt.Sprint(h.group, "-", number)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, own, e)
			must(t, reconcile.Reconciler{Engine: e}.DeleteSweep(acctest.Bounded(t), own.group, nil))
			own.checkSwept(t, e)
		})
	}
	try("every end", sweepsToEveryEnd)
	try("a change", sweepChanges)
	try("a run that vanishes", sweepVanishes)
	try("too many failures", sweepFails)
	try("requests", sweepRequests)
	try("results", sweepResults)
}

// sweep returns a sweep whose runs run the steps.
func (h Harness) sweep(runs map[string]string) domain.Sweep {
	template := h.Template("print:{{ .Role }} has {{ .Env.STEP }}", "environment:TRAINYARD_RUN",
		"environment:TRAINYARD_ATTEMPT", "{{ .Env.STEP }}")
	s := domain.Sweep{
		Cluster: h.lab, Name: h.group, Template: template, Runs: map[string]map[string]string{}, MaxParallel: new(2),
	}
	s.Placement.Hosts = []string{h.Host} // the host that has the files that the steps need
	for key, step := range runs {
		s.Runs[key] = map[string]string{"STEP": step}
	}
	return s
}

// put applies a sweep.
func (h Harness) put(t *testing.T, e engine.Engine, s domain.Sweep, created bool) {
	t.Helper()
	_, err := reconcile.Reconciler{Engine: e}.PutSweep(acctest.Bounded(t), s, created)
	must(t, err)
}

// swept returns a sweep once as accepts it.
func (h Harness) swept(
	t *testing.T, e engine.Engine, what string, as func(reconcile.Sweep, sweep.Summary) bool,
) reconcile.Sweep {
	t.Helper()
	var found reconcile.Sweep
	acctest.Eventually(t, what, func() bool {
		var err error
		found, err = reconcile.Reconciler{Engine: e}.SweepRuns(t.Context(), h.group)
		if reconcile.Passes(err) {
			return false
		}
		must(t, err)
		return as(found, sweep.Summarise(found.Document, found.Spec, found.Runs))
	})
	return found
}

func ended(_ reconcile.Sweep, s sweep.Summary) bool { return s.Ended() }

// checkSwept fails if anything is left of a sweep.
func (h Harness) checkSwept(t *testing.T, e engine.Engine) {
	t.Helper()
	observed, err := e.Observe(t.Context(), h.group)
	must(t, err)
	if len(observed) > 0 {
		t.Errorf("of sweep %s there is left: %v", h.group, observed)
	}
	h.awaitAlive(t, e, 0)
	for _, kind := range []domain.Kind{
		domain.SweepKind, domain.SweepRunsKind, domain.SweepRecordKind, domain.SweepLogKind,
		domain.SweepParallelismKind,
	} {
		items, err := e.List(t.Context(), kind)
		must(t, err)
		for _, item := range items {
			if name, _, _ := strings.Cut(item.Name, "/"); name == h.group {
				t.Errorf("%s is left", item.Key)
			}
		}
	}
}

// sweepsToEveryEnd: runs that succeed, fail, or fail once end as they should; their members are removed, and their logs
// kept.
func sweepsToEveryEnd(t *testing.T, h Harness, e engine.Engine) {
	s := h.sweep(map[string]string{
		"good": "exit:0", "bad": "exit:3", "final": "exit:126", "again": "once:" + h.Scratch(t),
		"value-1": "print:accuracy 0.5", "value-2": "print:accuracy 0.75",
	})
	s.Retry.MaxAttempts = new(2)
	s.Objective = &domain.Objective{Pattern: `accuracy ([0-9.]+)`}
	h.put(t, e, s, true)
	found := h.swept(t, e, "the end of all runs", ended)
	for key, want := range map[string]domain.Run{
		"good": {State: domain.RunSucceeded, Attempts: 1}, "again": {
			State: domain.RunSucceeded, Attempts: 2, Failures: 1,
		}, "value-1": {State: domain.RunSucceeded, Attempts: 1},
		"bad":   {State: domain.RunFailed, Attempts: 2, Failures: 2},
		"final": {State: domain.RunFailed, Attempts: 1, Failures: 1},
	} {
		got := found.Runs[key]
		if got.State != want.State || got.Attempts != want.Attempts || got.Failures != want.Failures ||
			got.ExitCode == nil || got.StartedAt == nil || got.FinishedAt == nil {
			t.Errorf("%s is %+v, want %+v", key, got, want)
		}
	}
	if best := sweep.Ranked(*s.Objective, found.Runs); !slices.Equal(best, []string{"value-2", "value-1"}) {
		t.Errorf("ranked are %v: %+v", best, found.Runs)
	}
	h.await(t, e, "members to be gone", func(observed []domain.Observed) bool { return len(observed) == 0 })
	lines, err := reconcile.Reconciler{Engine: e}.Logs(t.Context(), domain.RunName(h.group, "bad"), engine.LogOptions{})
	must(t, err)
	if want := []string{"bad has exit:3", "bad", "2"}; !slices.Equal(lines, want) {
		t.Errorf("the log of a run that ended is %q, want %q", lines, want)
	}
	// Applying the sweep again changes nothing for ended runs.
	h.put(t, e, s, false)
	if again := h.swept(t, e, "the end of all runs", ended); !again.Runs["good"].StartedAt.Equal(
		*found.Runs["good"].StartedAt,
	) || again.Document.MinRun != found.Document.MinRun {
		t.Errorf("applied again, the sweep is %+v", again)
	}
}

// sweepChanges: adding, removing and changing runs while others run affects only those.
func sweepChanges(t *testing.T, h Harness, e engine.Engine) {
	gate := h.Scratch(t)
	s := h.sweep(map[string]string{"done": "exit:0", "kept": "until:" + gate, "changed": "wait", "gone": "wait"})
	s.MaxParallel = new(4)
	h.put(t, e, s, true)
	before := h.swept(t, e, "three runs to be on", func(_ reconcile.Sweep, s sweep.Summary) bool {
		return s.Counts[domain.RunRunning] == 3 && s.Counts[domain.RunSucceeded] == 1
	})
	delete(s.Runs, "gone")
	s.Runs["changed"], s.Runs["new"] = map[string]string{"STEP": "exit:0"}, map[string]string{"STEP": "exit:0"}
	h.put(t, e, s, false)
	after := h.swept(t, e, "only the one to be on that was kept", func(_ reconcile.Sweep, s sweep.Summary) bool {
		return s.Counts[domain.RunRunning] == 1 && s.Counts[domain.RunSucceeded] == 3
	})
	if was, is := before.Runs["kept"], after.Runs["kept"]; is.Batch != was.Batch || after.Runs["done"].Attempts != 1 ||
		after.Runs["changed"].Attempts != 1 {
		t.Errorf("before the change the runs are %+v, and then %+v", before.Runs, after.Runs)
	}
	if _, there := after.Runs["gone"]; there {
		t.Errorf("a run that is gone is remembered: %+v", after.Runs["gone"])
	}
	// Destroyed while a run is running.
}

// sweepVanishes: if the member of a run disappears, the run is queued again, and no attempt is used up.
func sweepVanishes(t *testing.T, h Harness, e engine.Engine) {
	gate := h.Scratch(t)
	h.put(t, e, h.sweep(map[string]string{"one": "once:" + gate}), true)
	h.swept(t, e, "the run to fail", ended)
	s := h.sweep(map[string]string{"one": "wait"})
	h.put(t, e, s, false)
	started := h.swept(t, e, "the run to be on",
		func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Counts[domain.RunRunning] == 1 })
	h.awaitStates(t, e, domain.StateRunning)
	must(t, e.Remove(t.Context(), []string{domain.RunName(h.group, "one")}))
	again := h.swept(t, e, "the run to be on again", func(found reconcile.Sweep, s sweep.Summary) bool {
		return s.Counts[domain.RunRunning] == 1 && found.Runs["one"].Batch > started.Runs["one"].Batch
	})
	if run := again.Runs["one"]; run.Failures != 0 || run.Attempts != 2 {
		t.Errorf("the run is %+v", run)
	}
	h.awaitStates(t, e, domain.StateRunning)
}

// sweepFails: after too many failed runs, the others are cancelled.
func sweepFails(t *testing.T, h Harness, e engine.Engine) {
	s := h.sweep(map[string]string{"a-1": "exit:1", "a-2": "exit:1", "b-1": "wait", "c-1": "exit:0"})
	s.MaxParallel, s.OnFailure = new(3), &domain.SweepOnFailure{After: 2}
	h.put(t, e, s, true)
	found := h.swept(t, e, "the end of all runs", ended)
	for key, want := range map[string]domain.RunState{
		"a-1": domain.RunFailed, "a-2": domain.RunFailed, "b-1": domain.RunCancelled,
	} {
		if run := found.Runs[key]; run.State != want {
			t.Errorf("%s is %+v, want %s", key, run, want)
		}
	}
	h.await(t, e, "members to be gone", func(observed []domain.Observed) bool { return len(observed) == 0 })
	if err := (reconcile.Reconciler{Engine: e}).AwaitSweep(acctest.Bounded(t), h.group); err == nil ||
		!strings.Contains(err.Error(), "2 failed") {
		t.Errorf("an apply that waits for it says %v", err)
	}
}

// sweepRequests cancels, pauses and resumes runs.
func sweepRequests(t *testing.T, h Harness, e engine.Engine) {
	s := h.sweep(map[string]string{"a-on": "wait", "b-waits": "exit:0", "c-waits": "exit:0"})
	s.MaxParallel = new(1)
	h.put(t, e, s, true)
	h.swept(t, e, "one run to be on",
		func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Counts[domain.RunRunning] == 1 })
	h.awaitStates(t, e, domain.StateRunning)
	ask := func(wish domain.RunWish, keys ...string) map[string]domain.Run {
		t.Helper()
		must(t, reconcile.Reconciler{Engine: e}.RequestRuns(acctest.Bounded(t), h.group, keys, wish, false))
		found, err := reconcile.Reconciler{Engine: e}.SweepRuns(t.Context(), h.group)
		must(t, err)
		return found.Runs
	}
	if runs := ask(domain.WishPause, "b-waits"); runs["b-waits"].State != domain.RunPaused {
		t.Errorf("a paused run that waited is %+v", runs["b-waits"])
	}
	err := reconcile.Reconciler{
		Engine: e,
	}.RequestRuns(acctest.Bounded(t), h.group, []string{"a-on"}, domain.WishPause, false)
	if e.Traits().Supports.Pause {
		must(t, err)
		if runs := ask(domain.WishResume, "a-on"); runs["a-on"].State != domain.RunRunning {
			t.Errorf("a run that was paused while it ran and resumed is %+v", runs["a-on"])
		}
		ask(domain.WishPause, "a-on")
	} else if err == nil || !strings.Contains(err.Error(), "can't halt members") {
		t.Errorf("to pause a run that runs says %v", err)
	}
	if runs := ask(domain.WishCancel, "a-on"); runs["a-on"].State != domain.RunCancelled {
		t.Errorf("a cancelled run is %+v", runs["a-on"])
	}
	h.swept(t, e, "the run that waited to end", func(_ reconcile.Sweep, s sweep.Summary) bool {
		return s.Counts[domain.RunSucceeded] == 1 && s.Counts[domain.RunPaused] == 1 &&
			s.Counts[domain.RunCancelled] == 1
	})
	ask(domain.WishResume, "b-waits")
	h.swept(t, e, "the end of all runs", ended)
	h.await(t, e, "members to be gone", func(observed []domain.Observed) bool { return len(observed) == 0 })
	err = reconcile.Reconciler{
		Engine: e,
	}.RequestRuns(acctest.Bounded(t), h.group, []string{"none"}, domain.WishCancel, false)
	if err == nil || !strings.Contains(err.Error(), `has no run "none"`) {
		t.Errorf("to cancel a run that is not there says %v", err)
	}
}
