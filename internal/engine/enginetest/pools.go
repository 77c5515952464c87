package enginetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// farm returns a group of a master and interchangeable workers that run these steps. It never completes.
func (h Harness) farm(workers int, steps ...string) domain.Group {
	one := 1
	return domain.Group{
		Cluster: h.lab, Name: h.group, Framework: "spark", RestartScope: domain.ScopeMember,
		WaitFor: domain.WaitRunning,
		Roles: map[string]domain.Role{
			"master": {Replicas: &one, Template: h.Template("wait")},
			"worker": {Replicas: &workers, Template: h.Template(steps...)},
		},
	}
}

// workers changes the role "worker" of a group.
func workers(g domain.Group, change func(r *domain.Role)) domain.Group {
	role := g.Roles["worker"]
	change(&role)
	g.Roles["worker"] = role
	return g
}

// testInterchangeable: workers without an identity are created and observed, scaled without restarting the others,
// changed, and destroyed.
func testInterchangeable(t *testing.T, h Harness) {
	e := h.cluster(t)
	r := reconcile.Reconciler{Engine: e}
	must(t, r.Update(acctest.Bounded(t), h.farm(2, "print:hello", "wait")))
	two := h.running(t, r, 2)
	cluster, err := engine.Cluster(t.Context(), e)
	must(t, err)
	for _, o := range two {
		_, declared := cluster.Spec.Hosts[o.Host]
		if o.Role != "worker" || !declared || o.Address == "" || o.Restarts != 0 || o.RunStartedAt == nil {
			t.Errorf("a worker is observed as %+v", o)
		}
		acctest.Eventually(t, "the output of "+o.Name, func() bool {
			lines := logs(t, e, o.Name, engine.LogOptions{})
			return slices.Equal(lines, []string{"hello"})
		})
	}

	must(t, r.Update(acctest.Bounded(t), h.farm(4, "print:hello", "wait")))
	four := h.running(t, r, 4)
	h.kept(t, "that grew", two, four, 2)
	must(t, r.Update(acctest.Bounded(t), h.farm(1, "print:hello", "wait")))
	h.kept(t, "that shrank", four, h.running(t, r, 1), 1)

	must(t, r.Update(acctest.Bounded(t), h.farm(2, "print:hello", "wait")))
	before := h.running(t, r, 2)
	changed := workers(h.farm(2, "print:hello", "wait"),
		func(r *domain.Role) { r.Env = map[string]string{"CHANGED": "yes"} })
	must(t, r.Update(acctest.Bounded(t), changed))
	h.kept(t, "that was changed", before, h.running(t, r, 2), 0)

	must(t, r.Update(acctest.Bounded(t), workers(changed, func(r *domain.Role) { r.Replicas = new(0) })))
	h.running(t, r, 0)
	must(t, r.Update(acctest.Bounded(t), h.farm(2, "wait")))
	h.running(t, r, 2)
	must(t, r.Destroy(acctest.Bounded(t), h.group))
	h.checkGone(t, NewMortal(e, 0))
}

// running fails unless the group is as specified, with a master and this number of running workers; it returns the
// workers.
func (h Harness) running(t *testing.T, r reconcile.Reconciler, want int) []domain.Observed {
	t.Helper()
	group, err := r.Read(t.Context(), h.group)
	must(t, err)
	if changes := reconcile.Diff(group.Decision, group.Observed); len(changes) > 0 ||
		group.Progress.Phase != domain.PhaseRunning {
		t.Fatalf("the group is %s (%s), and there are changes left: %+v", group.Progress.Phase, group.Progress.Reason,
			changes)
	}
	found := slices.DeleteFunc(slices.Clone(group.Observed), func(o domain.Observed) bool { return o.Role != "worker" })
	if len(found) != want {
		t.Fatalf("%d workers were to run, and there are %v", want, found)
	}
	h.awaitAlive(t, r.Engine, want+1)
	return found
}

// kept fails unless exactly this number of the workers have kept running.
func (h Harness) kept(t *testing.T, which string, before, after []domain.Observed, want int) {
	t.Helper()
	started := map[time.Time]int{}
	for _, o := range before {
		started[*o.StartedAt]++
	}
	kept := 0
	for _, o := range after {
		if started[*o.StartedAt] > 0 {
			started[*o.StartedAt]--
			kept++
		}
	}
	if kept != want {
		t.Errorf("in a group %s, %d workers run on of %v, which should be %d: %v", which, kept, before, want, after)
	}
}

// testInterchangeableEnd: workers without an identity complete, fail, and are stopped with their group.
func testInterchangeableEnd(t *testing.T, h Harness) {
	e := h.cluster(t)
	r := reconcile.Reconciler{Engine: e}
	group := h.farm(2, "exit:0")
	group.Completion, group.WaitFor = domain.Completion{
		When: domain.WhenAll, Roles: []string{"worker"},
	}, domain.WaitCompleted
	must(t, r.Update(acctest.Bounded(t), group))
	h.ended(t, r, domain.StateStopped, domain.StateCompleted, domain.StateCompleted)
	// Applying again changes nothing; another worker makes all of it run again.
	must(t, r.Update(acctest.Bounded(t), group))
	h.ended(t, r, domain.StateStopped, domain.StateCompleted, domain.StateCompleted)
	must(t, r.Update(acctest.Bounded(t), workers(group, func(r *domain.Role) { r.Replicas = new(3) })))
	h.ended(t, r, domain.StateStopped, domain.StateCompleted, domain.StateCompleted, domain.StateCompleted)
	must(t, r.Destroy(acctest.Bounded(t), h.group))

	group = h.farm(2, "wait")
	group.Roles["submit"] = domain.Role{Replicas: new(1), Template: h.Template("exit:0")}
	group.WaitFor = domain.WaitCompleted
	// parallelism applies to changes, not to the end
	group = workers(group, func(r *domain.Role) { r.Update.Parallelism = 1 })
	must(t, r.Update(acctest.Bounded(t), group))
	h.ended(t, r, domain.StateStopped, domain.StateCompleted, domain.StateStopped, domain.StateStopped)
	must(t, r.Destroy(acctest.Bounded(t), h.group))

	group = workers(h.farm(2, "print:it broke", "exit:139"), func(r *domain.Role) {
		r.Restart = domain.Restart{MaxAttempts: new(1), Delay: new(domain.Duration(time.Millisecond))}
	})
	group.Completion, group.WaitFor = domain.Completion{
		When: domain.WhenAll, Roles: []string{"worker"},
	}, domain.WaitCompleted
	var failure *reconcile.MemberError
	if err := r.Update(acctest.Bounded(t), group); !errors.As(err, &failure) || failure.Member.Role != "worker" ||
		!slices.Contains(failure.Log, "it broke") {
		t.Errorf("workers that fail: %v", err)
	}
	// A change starts failed workers again.
	must(t, r.Update(acctest.Bounded(t), h.farm(2, "wait")))
	h.running(t, r, 2)
	must(t, r.Destroy(acctest.Bounded(t), h.group))
	h.checkGone(t, NewMortal(e, 0))
}

// ended fails unless the group has completed with its members in these states, in the order of their names, and no
// changes are left.
func (h Harness) ended(t *testing.T, r reconcile.Reconciler, states ...domain.State) {
	t.Helper()
	group, err := r.Read(t.Context(), h.group)
	must(t, err)
	var found []domain.State
	for _, o := range group.Observed {
		found = append(found, o.State)
	}
	if changes := reconcile.Diff(group.Decision, group.Observed); group.Progress.Phase != domain.PhaseCompleted ||
		!slices.Equal(found, states) || len(changes) > 0 {
		t.Errorf("the group is %s, its members are %v, and to be changed: %+v", group.Progress.Phase, group.Observed,
			changes)
	}
}

// testInterchangeableAfterDeath: an apply that grows and changes such workers dies after some of its changes, and the
// group is then destroyed, in every other case without another apply.
func testInterchangeableAfterDeath(t *testing.T, h Harness) {
	h.atDeaths(t, h.cluster(t), 1, func(t *testing.T, h Harness, mortal *Mortal) {
		r := reconcile.Reconciler{Engine: mortal.Immortal}
		after, again := h.farm(2, "print:changed", "wait"), mortal.last%2 == 0
		must(t, r.Update(acctest.Bounded(t), h.farm(1, "wait")))
		err := reconcile.Reconciler{Engine: mortal}.Update(acctest.Bounded(t), after)
		if err != nil && !errors.Is(err, ErrDead) {
			t.Fatalf("after %v: %v", mortal.Calls(), err)
		}
		if again {
			must(t, r.Update(acctest.Bounded(t), after))
			h.running(t, r, 2)
		}
		must(t, r.Destroy(acctest.Bounded(t), h.group))
		h.checkGone(t, mortal)
	})
}

// testUpdateInTurns: workers are updated one after the other. If the first fails with a change, it is rolled back, and
// the last is not touched.
func testUpdateInTurns(t *testing.T, h Harness) {
	e := h.cluster(t)
	r := reconcile.Reconciler{Engine: e}
	inTurns := func(steps ...string) domain.Group {
		return workers(h.job(3, steps...), func(r *domain.Role) {
			r.Update = domain.Update{
				Parallelism: 1, Delay: new(domain.Duration(time.Second)), OnFailure: domain.UpdateRollback,
			}
			r.ExitCodes = &domain.ExitCodeRule{Final: domain.ExitCodes{"3"}}
		})
	}
	running := []domain.State{domain.StateRunning, domain.StateRunning, domain.StateRunning}
	must(t, r.Update(acctest.Bounded(t), inTurns("wait")))
	first := h.awaitStates(t, e, running...)
	must(t, r.Update(acctest.Bounded(t), inTurns("print:second", "wait")))
	second := h.awaitStates(t, e, running...)
	latest := *first[2].StartedAt
	for _, o := range second {
		if !o.StartedAt.After(latest) {
			t.Errorf("%s started at %s, and not after %s", o.Name, o.StartedAt, latest)
		}
		latest = *o.StartedAt
	}

	var failure *reconcile.MemberError
	err := r.Update(acctest.Bounded(t), inTurns("print:third", "{{ if eq .Index 0 }}exit:3{{ else }}wait{{ end }}"))
	if !errors.As(err, &failure) || failure.Member.Name != h.memberName(0) || !slices.Contains(failure.Log, "third") ||
		!strings.Contains(err.Error(), "was rolled back") {
		t.Fatalf("an update that fails with its first member: %v", err)
	}
	after := h.awaitStates(t, e, running...)
	if !after[2].StartedAt.Equal(*second[2].StartedAt) || after[0].StartedAt.Equal(*second[0].StartedAt) {
		t.Errorf("the members were %v, and are %v", second, after)
	}
	for i, o := range after {
		if o.Hash != second[i].Hash {
			t.Errorf("%s is not what it was", o.Name)
		}
	}
	group, err := r.Read(t.Context(), h.group)
	must(t, err)
	if !group.Document.Spec.Equal(inTurns("print:second", "wait")) || group.Document.Applying ||
		group.Document.Before != nil {
		t.Errorf("stored is %+v", group.Document)
	}
}
