package enginetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// job returns a group whose workers run these steps.
func (h Harness) job(workers int, steps ...string) domain.Group {
	return domain.Group{
		Cluster: h.lab, Name: h.group, Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Template: h.Template(steps...),
		Roles:    map[string]domain.Role{"worker": {Replicas: &workers}},
	}
}

// atDeaths calls try with a caller that survives, which shows how many of its calls change something, and then with
// callers that die after each number of changes; by day, without EveryDeath, after each third, starting with first.
// Deaths between reads make no difference. Each try has its own group, and they run in parallel.
func (h Harness) atDeaths(
	t *testing.T, e engine.Engine, first int, try func(t *testing.T, h Harness, mortal *Mortal),
) {
	t.Helper()
	attempt := func(t *testing.T, number, changes int) *Mortal {
		t.Helper()
		own := h
		own.group = fmt.Sprint(h.group, "-", number)
		mortal := NewMortal(e, changes)
		try(t, own, mortal)
		t.Logf("the calls were %v", mortal.Calls())
		return mortal
	}
	changes, apart := attempt(t, 0, math.MaxInt).Changes(), 3
	if h.EveryDeath || acctest.AllKills() {
		first, apart = 0, 1
	}
	if first >= changes {
		t.Errorf("there are only %d changes, and nobody dies after %d", changes, first)
	}
	for k := first; k < changes; k += apart {
		t.Run(fmt.Sprint("after ", k, " changes"), func(t *testing.T) {
			t.Parallel()
			attempt(t, k+1, k)
		})
	}
}

// testApplyAfterDeath: if an apply dies after any of its changes, the next one converges, with no member missing,
// duplicated or left over. Groups are created, grown, changed and shrunk.
func testApplyAfterDeath(t *testing.T, h Harness) {
	e := h.cluster(t)
	for _, c := range []struct {
		name   string
		first  int
		before func(h Harness) domain.Group
		after  func(h Harness) domain.Group
	}{
		{"create", 0, nil, func(h Harness) domain.Group { return h.job(2, "wait") }},
		{
			"grow", 1, func(h Harness) domain.Group { return h.job(1, "wait") },
			func(h Harness) domain.Group { return h.job(2, "print:changed", "wait") },
		},
		{
			"shrink", 2, func(h Harness) domain.Group { return h.job(3, "wait") },
			func(h Harness) domain.Group { return h.job(1, "wait") },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := h
			own.group = fmt.Sprint(h.group, "-", c.name)
			own.atDeaths(t, e, c.first, func(t *testing.T, h Harness, mortal *Mortal) {
				r := reconcile.Reconciler{Engine: mortal.Immortal}
				if c.before != nil {
					must(t, r.Update(acctest.Bounded(t), c.before(h)))
				}
				err := reconcile.Reconciler{Engine: mortal}.Update(acctest.Bounded(t), c.after(h))
				if err != nil && !errors.Is(err, ErrDead) {
					t.Fatalf("after %v: %v", mortal.Calls(), err)
				}
				must(t, r.Update(acctest.Bounded(t), c.after(h)))
				h.check(t, mortal, c.after(h))
				must(t, r.Destroy(acctest.Bounded(t), h.group))
				h.checkGone(t, mortal)
			})
		})
	}
}

// testRevertAfterDeath: if an apply of a change dies after any of its own changes, applying the old specification
// leaves nothing of the change.
func testRevertAfterDeath(t *testing.T, h Harness) {
	h.atDeaths(t, h.cluster(t), 2, func(t *testing.T, h Harness, mortal *Mortal) {
		r := reconcile.Reconciler{Engine: mortal.Immortal}
		before := h.job(1, "wait")
		must(t, r.Update(acctest.Bounded(t), before))
		err := reconcile.Reconciler{Engine: mortal}.Update(acctest.Bounded(t), h.job(2, "print:changed", "wait"))
		if err != nil && !errors.Is(err, ErrDead) {
			t.Fatalf("after %v: %v", mortal.Calls(), err)
		}
		must(t, r.Update(acctest.Bounded(t), before))
		h.check(t, mortal, before)
	})
}

// testDeleteWithMembers deletes a cluster with members that belong to no group's document.
func testDeleteWithMembers(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "wait"))
	h.awaitStates(t, e, domain.StateRunning)
	must(t, e.Stage(t.Context(), []domain.MemberSpec{h.member(1, "wait")}))
	must(t, e.Dissolve(acctest.Bounded(t)))
	h.awaitAlive(t, e, 0)
	if _, err := engine.Cluster(t.Context(), e); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a deleted cluster: %v, not ErrNotFound", err)
	}
}

// testDestroyAfterDeath: if a destroy dies after any of its changes, the next one completes it.
func testDestroyAfterDeath(t *testing.T, h Harness) {
	h.atDeaths(t, h.cluster(t), 2, func(t *testing.T, h Harness, mortal *Mortal) {
		r := reconcile.Reconciler{Engine: mortal.Immortal}
		must(t, r.Update(acctest.Bounded(t), h.job(2, "wait")))
		err := reconcile.Reconciler{Engine: mortal}.Destroy(acctest.Bounded(t), h.group)
		if err != nil && !errors.Is(err, ErrDead) {
			t.Fatalf("after %v: %v", mortal.Calls(), err)
		}
		must(t, r.Destroy(acctest.Bounded(t), h.group))
		h.checkGone(t, mortal)
		// There is nothing left to destroy.
		must(t, r.Destroy(acctest.Bounded(t), h.group))
	})
}

// testDestroyNothing destroys a group of a cluster that does not exist.
func testDestroyNothing(t *testing.T, h Harness) {
	e := h.cluster(t)
	must(t, e.Dissolve(acctest.Bounded(t)))
	must(t, reconcile.Reconciler{Engine: e}.Destroy(acctest.Bounded(t), h.group))
}

// check fails unless the group runs as specified, with one process per member.
func (h Harness) check(t *testing.T, mortal *Mortal, spec domain.Group) {
	t.Helper()
	group, err := reconcile.Reconciler{Engine: mortal.Immortal}.Read(t.Context(), spec.Name)
	must(t, err)
	want := *spec.Roles["worker"].Replicas
	if group.Progress.Phase != domain.PhaseRunning || len(group.Observed) != want || group.Document.Applying {
		t.Fatalf("after a death after %v: %s (%s), members %v, applying %v", mortal.Calls(), group.Progress.Phase,
			group.Progress.Reason, group.Observed, group.Document.Applying)
	}
	if changes := reconcile.Diff(group.Decision, group.Observed); len(changes) > 0 {
		t.Fatalf("after a death after %v there are changes left: %+v", mortal.Calls(), changes)
	}
	h.awaitAlive(t, mortal.Immortal, want)
}

func (h Harness) checkGone(t *testing.T, mortal *Mortal) {
	t.Helper()
	e := mortal.Immortal
	observed, err := e.Observe(t.Context(), h.group)
	must(t, err)
	if _, err := engine.Get[domain.GroupDocument](t.Context(), e, h.group); !errors.Is(err, engine.ErrNotFound) {
		t.Fatalf("after a death after %v and a destroy, the group's document is still there (%v)", mortal.Calls(), err)
	}
	if len(observed) != 0 {
		t.Fatalf("after a death after %v and a destroy, there are %v", mortal.Calls(), observed)
	}
	h.awaitAlive(t, e, 0)
}

// testController: the cluster's own controller keeps a group running between two applies.
func testController(t *testing.T, h Harness) {
	e := h.cluster(t)
	r := reconcile.Reconciler{Engine: e}
	one := 1
	group := h.job(1, "exit:0")
	group.Roles["ps"] = domain.Role{Replicas: &one, Template: h.Template("wait")}
	group.Completion = domain.Completion{When: domain.WhenChief}
	group.WaitFor = domain.WaitCompleted
	must(t, r.Update(acctest.Bounded(t), group))
	read, err := r.Read(t.Context(), h.group)
	must(t, err)
	if read.Progress.Phase != domain.PhaseCompleted || read.Observed[0].State != domain.StateStopped {
		t.Errorf("the group is %s, its members are %v", read.Progress.Phase, read.Observed)
	}
	must(t, r.Destroy(acctest.Bounded(t), h.group))

	// On a busy machine, members may take longer to start than the group's timeout; then try again with twice the time.
	for limit := h.StartsWithin + 300*time.Millisecond; ; limit *= 2 {
		group = h.job(2, "wait")
		group.Completion = domain.Completion{When: domain.WhenAll, Deadline: new(domain.Duration(limit))}
		err := r.Update(acctest.Bounded(t), group)
		if err != nil && limit < patience.Limit && strings.Contains(err.Error(), "within its deadline") {
			must(t, r.Destroy(acctest.Bounded(t), h.group))
			continue
		}
		must(t, err)
		break
	}
	h.awaitStates(t, e, domain.StateStopped, domain.StateStopped)
	read, err = r.Read(t.Context(), h.group)
	must(t, err)
	if read.Progress.Phase != domain.PhaseFailed {
		t.Errorf("past its deadline the group is %s", read.Progress.Phase)
	}
	must(t, r.Destroy(acctest.Bounded(t), h.group))

	delay := domain.Duration(time.Millisecond)
	group = h.job(1, "wait")
	group.RestartScope = domain.ScopeGroup
	group.Roles["flaky"] = domain.Role{
		Replicas: &one, Restart: domain.Restart{Delay: &delay},
		Template: h.Template("once:"+h.Scratch(t), "exit:0"),
	}
	group.Completion = domain.Completion{When: domain.WhenAll, Roles: []string{"flaky"}}
	group.WaitFor = domain.WaitCompleted
	must(t, r.Update(acctest.Bounded(t), group))
	h.checkGroupRestart(t, r)
	must(t, r.Destroy(acctest.Bounded(t), h.group))

	// The member fails again while the apply waits for it to run, and holds the lock that the controller would need.
	group.Roles["flaky"] = domain.Role{
		Replicas: &one, Restart: domain.Restart{Delay: &delay},
		Template: h.Template("once:"+h.Scratch(t), "wait"),
	}
	group.Completion, group.WaitFor = domain.Completion{}, domain.WaitRunning
	must(t, r.Update(acctest.Bounded(t), group))
	acctest.Eventually(t, "the group to run again", func() bool {
		read, err := r.Read(t.Context(), h.group)
		if reconcile.Passes(err) {
			return false
		}
		must(t, err)
		return read.Progress.Phase == domain.PhaseRunning && read.Document.GroupRestarts == 1
	})
	h.checkGroupRestart(t, r)
}

// checkGroupRestart fails unless the group was restarted once, with all its members.
func (h Harness) checkGroupRestart(t *testing.T, r reconcile.Reconciler) {
	t.Helper()
	read, err := r.Read(t.Context(), h.group)
	must(t, err)
	if read.Document.GroupRestarts != 1 {
		t.Errorf("the group was restarted %d times as a whole", read.Document.GroupRestarts)
		logMembers(t, read.Observed)
	}
	for _, o := range read.Observed {
		if o.Run != read.Document.MinRun {
			t.Errorf("%s runs since run %d, and the group since %d", o.Name, o.Run, read.Document.MinRun)
		}
	}
}
