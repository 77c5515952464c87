package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// current returns the decision for a document of the cluster [lab].
func current(doc domain.GroupDocument) reconcile.Decision {
	view := lab()
	return reconcile.Current(view.Traits, view.Inventory.Hosts, doc)
}

func duration(d time.Duration) *domain.Duration { return (*domain.Duration)(&d) }

// fail makes an observed member fail this long after the epoch.
func fail(o *domain.Observed, code int, after time.Duration) {
	finished := epoch.Add(after)
	o.State, o.ExitCode, o.FinishedAt, o.LastError = domain.StateFailed, &code, &finished, "it broke"
}

// TestProgressOfAGroup: a group of ps-0, worker-0 (the chief) and worker-1 that was restarted once, with minimum run 3.
func TestProgressOfAGroup(t *testing.T) {
	failed := domain.Progress{Phase: domain.PhaseFailed, Reason: "failed: mnist-worker-0: it broke"}
	for name, c := range map[string]struct {
		scope  domain.RestartScope
		change func(o []domain.Observed)
		want   domain.Progress
	}{
		"as it should be": {
			domain.ScopeMember, func([]domain.Observed) {}, domain.Progress{Phase: domain.PhaseRunning},
		},
		"an older specification": {domain.ScopeMember, func(o []domain.Observed) {
			o[1].Hash = "older"
		}, domain.Progress{Phase: domain.PhasePending}},
		"completed under an older specification": {domain.ScopeMember, func(o []domain.Observed) {
			o[1].Hash, o[1].State = "older", domain.StateCompleted
		}, domain.Progress{Phase: domain.PhasePending}},
		"failed under an older specification": {domain.ScopeGroup, func(o []domain.Observed) {
			fail(&o[1], 137, 0)
			o[1].Hash = "older"
		}, domain.Progress{Phase: domain.PhasePending}},
		"failed in an older run": {domain.ScopeGroup, func(o []domain.Observed) {
			fail(&o[1], 137, 0)
			o[1].Run = 2
		}, domain.Progress{Phase: domain.PhasePending}},
		"a member failed for good": {domain.ScopeMember, func(o []domain.Observed) { fail(&o[1], 137, 0) }, failed},
		"the group gets another attempt": {domain.ScopeGroup, func(o []domain.Observed) {
			fail(&o[1], 137, 0)
		}, domain.Progress{Phase: domain.PhaseDegraded, Reason: "restarting: mnist-worker-0"}},
		"the group gets none for a final exit code": {
			domain.ScopeGroup, func(o []domain.Observed) { fail(&o[1], 127, 0) }, failed,
		},
		"the group gets none without an exit code": {domain.ScopeGroup, func(o []domain.Observed) {
			o[1].State, o[1].LastError = domain.StateFailed, "it broke"
		}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			doc := stored(t, group(1, 2), 5)
			doc.MinRun, doc.GroupRestarts, doc.Spec.RestartScope = 3, 1, c.scope
			d := current(doc)
			observed := observe(d, 3)
			c.change(observed)
			before := append([]domain.Observed(nil), observed...)
			if diff := cmp.Diff(c.want, reconcile.Progress(d, observed)); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, observed); diff != "" {
				t.Errorf("what was observed was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestProgressOfAnExhaustedGroup(t *testing.T) {
	doc := stored(t, group(1, 2, asAWhole, role("worker", func(r *domain.Role) { r.Restart.MaxAttempts = new(2) })), 5)
	for restarts, want := range []domain.Phase{domain.PhaseDegraded, domain.PhaseDegraded, domain.PhaseFailed} {
		doc.GroupRestarts = restarts
		d := current(doc)
		observed := observe(d, 5)
		fail(&observed[1], 137, 0)
		if got := reconcile.Progress(d, observed).Phase; got != want {
			t.Errorf("after %d restarts of 2 the group is %s, not %s", restarts, got, want)
		}
	}
}

// TestKeep: a group of ps-0, worker-0 (the chief) and worker-1 with a deadline of an hour, a minute after it
// started in run 3 at the epoch.
func TestKeep(t *testing.T) {
	now := epoch.Add(time.Minute)
	const ps, w0, w1 = 0, 1, 2
	noStop := func(g *domain.Group) { g.Completion.StopRest = new(false) }
	untimed := func(g *domain.Group) { g.Completion.Deadline = nil }
	slowly := role("worker", func(r *domain.Role) { r.Restart.Delay = duration(30 * time.Second) })
	nothing := reconcile.Upkeep{}
	atDeadline := reconcile.Upkeep{Next: epoch.Add(time.Hour)}
	var all = []string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}

	for name, c := range map[string]struct {
		spec   func(g *domain.Group)
		doc    func(doc *domain.GroupDocument)
		change func(o []domain.Observed)
		want   reconcile.Upkeep
	}{
		"running": {want: atDeadline},
		"running without a deadline": {
			spec: untimed, want: nothing,
		},
		"not started": {
			change: func(o []domain.Observed) {
				for i := range o {
					o[i].State, o[i].RunStartedAt = domain.StatePending, nil
				}
			},
			want: nothing,
		},
		"the first start counts": {
			change: func(o []domain.Observed) { o[w1].RunStartedAt = new(epoch.Add(-time.Second)) },
			want:   reconcile.Upkeep{Next: epoch.Add(time.Hour - time.Second)},
		},
		"a start in an older run does not": {
			change: func(o []domain.Observed) { o[w1].Run, o[w1].RunStartedAt = 2, new(epoch.Add(-time.Second)) },
			want:   atDeadline,
		},
		"the start before restarts does": {
			doc: func(doc *domain.GroupDocument) {
				doc.GroupRestarts, doc.StartedAt = 1, new(epoch.Add(-time.Minute))
			},
			want: reconcile.Upkeep{Next: epoch.Add(59 * time.Minute)},
		},

		"completed": {
			change: func(o []domain.Observed) {
				o[w0].State, o[w1].State = domain.StateCompleted, domain.StateRestarting
			},
			want: reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-1"}, Reason: domain.StopCompleted},
		},
		"completed, and others have ended": {
			change: func(o []domain.Observed) {
				o[ps].State, o[w0].State, o[w1].State = domain.StateStopped, domain.StateCompleted, domain.StateFailed
			},
			want: reconcile.Upkeep{Reason: domain.StopCompleted},
		},
		"completed, and the rest goes on": {
			spec:   noStop,
			change: func(o []domain.Observed) { o[w0].State = domain.StateCompleted },
			want:   reconcile.Upkeep{Reason: domain.StopCompleted},
		},
		"failed": {
			change: func(o []domain.Observed) { fail(&o[w0], 1, 0) },
			want:   reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-1"}, Reason: domain.StopFailed},
		},
		"failed, and the rest goes on": {
			spec:   noStop,
			change: func(o []domain.Observed) { fail(&o[w0], 1, 0) },
			want:   reconcile.Upkeep{Reason: domain.StopFailed},
		},
		"degraded": {
			change: func(o []domain.Observed) { fail(&o[w1], 1, 0) },
			want:   atDeadline,
		},

		"past the deadline": {
			spec:   func(g *domain.Group) { g.Completion.Deadline = duration(time.Minute) },
			change: func(o []domain.Observed) { o[w1].State = domain.StateCompleted },
			want:   reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-0"}, Reason: domain.StopDeadline},
		},
		"past the deadline everything is stopped": {
			spec: func(g *domain.Group) {
				noStop(g)
				g.Completion.Deadline = duration(time.Minute)
			},
			want: reconcile.Upkeep{Stop: all, Reason: domain.StopDeadline},
		},
		"just before the deadline": {
			spec: func(g *domain.Group) { g.Completion.Deadline = duration(time.Minute + 1) },
			want: reconcile.Upkeep{Next: now.Add(1)},
		},
		"completed past the deadline": {
			spec:   func(g *domain.Group) { g.Completion.Deadline = duration(time.Second) },
			change: func(o []domain.Observed) { o[w0].State = domain.StateCompleted },
			want:   reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-1"}, Reason: domain.StopCompleted},
		},

		"one to be restarted alone": {
			change: func(o []domain.Observed) { fail(&o[w1], 137, 0) },
			want:   atDeadline,
		},
		"to be restarted as a whole": {
			spec:   asAWhole,
			change: func(o []domain.Observed) { fail(&o[w1], 137, 59*time.Second) },
			want:   reconcile.Upkeep{Restart: true},
		},
		"the chief, too": {
			spec:   asAWhole,
			change: func(o []domain.Observed) { fail(&o[w0], 137, 59*time.Second) },
			want:   reconcile.Upkeep{Restart: true},
		},
		"to be restarted as a whole, with a delay": {
			spec: func(g *domain.Group) {
				asAWhole(g)
				slowly(g)
			},
			change: func(o []domain.Observed) { fail(&o[w1], 137, 59*time.Second) },
			want:   reconcile.Upkeep{Next: epoch.Add(89 * time.Second)},
		},
		"the delay doubles": {
			spec: func(g *domain.Group) {
				asAWhole(g)
				slowly(g)
			},
			doc:    func(doc *domain.GroupDocument) { doc.GroupRestarts = 2 },
			change: func(o []domain.Observed) { fail(&o[w1], 137, 59*time.Second) },
			want:   reconcile.Upkeep{Next: epoch.Add(179 * time.Second)},
		},
		"a clock that is somewhat ahead delays it": {
			spec: asAWhole, change: func(o []domain.Observed) { fail(&o[w1], 137, 119*time.Second) },
			want: reconcile.Upkeep{Next: epoch.Add(120 * time.Second)},
		},
		"a clock that is far ahead delays nothing": {
			spec: asAWhole, change: func(o []domain.Observed) { fail(&o[w1], 137, time.Hour) },
			want: reconcile.Upkeep{Restart: true},
		},
		"the deadline comes before the restart": {
			spec: func(g *domain.Group) {
				asAWhole(g)
				slowly(g)
				g.Completion.Deadline = duration(70 * time.Second)
			},
			change: func(o []domain.Observed) { fail(&o[w1], 137, 59*time.Second) },
			want:   reconcile.Upkeep{Next: epoch.Add(70 * time.Second)},
		},
		"past the deadline there is no restart to wait for": {
			spec: func(g *domain.Group) {
				asAWhole(g)
				slowly(g)
				g.Completion.Deadline = duration(time.Minute)
			},
			change: func(o []domain.Observed) { fail(&o[w1], 137, 59*time.Second) },
			want:   reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-0"}, Reason: domain.StopDeadline},
		},
		"past the deadline with nothing left to stop": {
			spec: func(g *domain.Group) {
				asAWhole(g)
				slowly(g)
				g.Completion.Deadline = duration(time.Minute)
			},
			change: func(o []domain.Observed) {
				for i := range o {
					fail(&o[i], 137, 59*time.Second)
				}
				o[ps].ExitCode = nil
			},
			want: reconcile.Upkeep{Next: epoch.Add(89 * time.Second)},
		},
		"a failure that was dealt with": {
			spec:   asAWhole,
			change: func(o []domain.Observed) { fail(&o[w1], 137, 0); o[w1].Run = 2 },
			want:   atDeadline,
		},
		"a restart that was not finished": {
			spec:   asAWhole,
			doc:    func(doc *domain.GroupDocument) { doc.GroupRestarts = 1 },
			change: func(o []domain.Observed) { o[ps].Run = 2; fail(&o[w1], 137, 0); o[w1].Run = 2 },
			want:   reconcile.Upkeep{Resume: true},
		},
		"a member that an apply has yet to start": {
			spec:   asAWhole,
			doc:    func(doc *domain.GroupDocument) { doc.GroupRestarts = 1 },
			change: func(o []domain.Observed) { o[w1].Run, o[w1].Hash, o[w1].State = 0, "", domain.StatePending },
			want:   atDeadline,
		},
		"no further attempt": {
			spec:   asAWhole,
			doc:    func(doc *domain.GroupDocument) { doc.GroupRestarts = domain.DefaultMaxAttempts },
			change: func(o []domain.Observed) { fail(&o[w0], 137, 0) },
			want:   reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-1"}, Reason: domain.StopFailed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := group(1, 2, func(g *domain.Group) { g.Completion.Deadline = duration(time.Hour) })
			if c.spec != nil {
				c.spec(&spec)
			}
			doc := stored(t, spec, 5)
			doc.MinRun = 3
			if c.doc != nil {
				c.doc(&doc)
			}
			d := current(doc)
			observed := observe(d, 3)
			if c.change != nil {
				c.change(observed)
			}
			if diff := cmp.Diff(c.want, reconcile.Keep(d, observed, nil, now)); diff != "" {
				t.Errorf("upkeep (-want +got):\n%s", diff)
			}
		})
	}
}
