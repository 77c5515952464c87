package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// pool is a group of a master and interchangeable workers that are restricted to these hosts.
func pool(workers int, hosts ...string) domain.Group {
	return group(0, workers, func(g *domain.Group) {
		g.Framework = "spark"
		g.Roles = map[string]domain.Role{
			"master": {}, "worker": {Replicas: &workers, Placement: domain.Placement{Hosts: hosts}},
		}
	})
}

// spread sets the placement strategy of the workers.
func spread(g domain.Group, strategy domain.Strategy) domain.Group {
	role("worker", func(r *domain.Role) { r.Placement.Strategy = strategy })(&g)
	return g
}

// updated sets the update rule of the workers.
func updated(g domain.Group, update domain.Update) domain.Group {
	role("worker", func(r *domain.Role) { r.Update = update })(&g)
	return g
}

// TestPoolsChangeAsOne: members that the engine schedules all have the same run.
func TestPoolsChangeAsOne(t *testing.T) {
	view := lab()
	view.Traits.Schedules, view.Traits.MemberAddress = true, addressed
	d := decide(t, view, pool(3))
	for _, m := range d.Members {
		if want := map[bool]string{true: addressed("mnist-worker") +
			":20000", false: addressed("mnist-master-0") + ":20000"}[m.Role == "worker"]; m.Address != want {
			t.Errorf("%s is at %s, not %s", m.Name, m.Address, want)
		}
	}
	failed := d.Document
	failed.Revision, failed.Applying = 3, true
	view.Groups["mnist"] = failed
	retried := decide(t, view, pool(3))
	const all = "mnist-worker-0 restart 0, mnist-worker-1 restart 0, mnist-worker-2 restart 0"
	for name, c := range map[string]struct {
		decision reconcile.Decision
		// change modifies the workers as observed, in run 2.
		change func(workers []domain.Observed) []domain.Observed
		want   string
	}{
		"as they should be": {d, func(w []domain.Observed) []domain.Observed { return w }, ""},
		"one is missing": {
			d, func(w []domain.Observed) []domain.Observed { return w[:2] }, "mnist-worker-2 start 2",
		},
		"one is about to end": {d, func(w []domain.Observed) []domain.Observed {
			w[2].Hash, w[2].Run = "", 0
			return w
		}, "mnist-worker-2 start 2"},
		"none was ever started": {d, func(w []domain.Observed) []domain.Observed {
			w[0].Hash, w[0].Run = "", 0
			return w[:1]
		}, "mnist-worker-0 start 0, mnist-worker-1 start 0, mnist-worker-2 start 0"},
		"none is left": {d, func(w []domain.Observed) []domain.Observed {
			w[0].Replicas = new(0)
			return w[:1]
		}, "mnist-worker-0 mend 2, mnist-worker-1 start 2, mnist-worker-2 start 2"},
		"one failed in an apply that did": {retried, func(w []domain.Observed) []domain.Observed {
			w[1].State = domain.StateFailed
			return w
		}, all},
		"changed, and one is missing": {d, func(w []domain.Observed) []domain.Observed {
			w[0].Hash, w[1].Hash = "other", "other"
			return w[:2]
		}, "mnist-worker-0 restart 0, mnist-worker-1 restart 0, mnist-worker-2 start 0"},
		"one too many": {d, func(w []domain.Observed) []domain.Observed {
			more := w[0]
			more.Name, more.Index = "mnist-worker-3", 3
			return append(w, more)
		}, "mnist-worker-3 remove 0"},
	} {
		t.Run(name, func(t *testing.T) {
			observed := observe(d, 2)
			var got []string
			for _, change := range reconcile.Diff(c.decision, append(observed[:1:1], c.change(observed[1:])...)) {
				got = append(got, fmt.Sprint(change.Member, " ", change.Action, " ", change.Run))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("the changes are %q, not %q", text, c.want)
			}
		})
	}
}

// TestDecideRefusesPools: the plan rejects per-member settings of members that the engine schedules.
func TestDecideRefusesPools(t *testing.T) {
	spec := pool(2)
	role("worker", func(r *domain.Role) { r.Args = []string{"{{ .Index }}"} })(&spec)
	view := lab()
	if _, problems := reconcile.Decide(view, spec); problems.Err() != nil {
		t.Errorf("members that are placed have an index: %v", problems)
	}
	view.Traits.Schedules = true
	if _, problems := reconcile.Decide(view, spec); problems.Err() == nil ||
		problems[0].Path.String() != `roles["worker"].args[0]` {
		t.Errorf("members that the engine distributes have none: %v", problems)
	}
}

// TestScheduledByTheEngine: members that the engine schedules have no host. A change of their placement is passed on to
// the engine without a new run.
func TestScheduledByTheEngine(t *testing.T) {
	view := inRacks(lab())
	view.Traits.Schedules, view.Traits.MemberAddress = true, addressed
	first := decide(t, view, pool(2))
	hosts := map[string]string{}
	hashes := map[string]bool{}
	for i, m := range first.Members {
		hosts[m.Name] = m.Host
		hashes[first.Layout.Hash(i)] = true
	}
	if diff := cmp.Diff(map[string]string{"mnist-master-0": "a", "mnist-worker-0": "", "mnist-worker-1": ""},
		hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if len(hashes) != 2 {
		t.Errorf("a master and two workers have %d hashes", len(hashes))
	}
	first.Document.Revision = 3
	for name, c := range map[string]struct {
		spec     domain.Group
		applying bool
		want     map[string]int
	}{
		"unchanged":                    {pool(2), false, nil},
		"other hosts":                  {pool(2, "a"), false, map[string]int{"mnist-worker-0": 2, "mnist-worker-1": 2}},
		"after an apply that has died": {pool(2), true, map[string]int{"mnist-worker-0": 2, "mnist-worker-1": 2}},
		"one more joins the others":    {pool(3), false, map[string]int{"mnist-worker-2": 2}},
		"another update": {
			updated(pool(2), domain.Update{Parallelism: 1}), false,
			map[string]int{"mnist-worker-0": 2, "mnist-worker-1": 2},
		},
		"the same update": {
			updated(pool(2), domain.Update{OnFailure: domain.UpdatePause, Delay: duration(0)}), false, nil,
		},
		"the default written out": {spread(pool(2), domain.Spread), false, nil},
		"another strategy": {
			spread(pool(2), domain.Pack), false, map[string]int{"mnist-worker-0": 2, "mnist-worker-1": 2},
		},
		"spread by a label": {
			spreadBy(pool(2), "rack"), false, map[string]int{"mnist-worker-0": 2, "mnist-worker-1": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc := first.Document
			doc.Applying = c.applying
			view.Groups[doc.Spec.Name] = doc
			var got map[string]int
			for _, change := range reconcile.Diff(decide(t, view, c.spec), observe(first, 2)) {
				if got == nil {
					got = map[string]int{}
				}
				got[change.Member] = change.Run
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("runs of the members that change (-want +got):\n%s", diff)
			}
		})
	}
	// A worker that has ended stays ended, wherever it was.
	view.Groups[first.Document.Spec.Name] = first.Document
	observed := observe(first, 2)
	observed[2].State = domain.StateFailed
	if changes := reconcile.Diff(decide(t, view, pool(2, "a")), observed); len(changes) != 1 ||
		changes[0].Member != "mnist-worker-0" {
		t.Errorf("beside a worker that has ended the changes are %+v", changes)
	}
	// The engine looks after the hosts of the others.
	lost := map[string]string{"a": "host a is down"}
	for i := range observed {
		observed[i].Host = "a"
	}
	if keep := reconcile.Keep(first, observed, lost, epoch); !cmp.Equal(keep.Move, []string{"mnist-master-0"}) {
		t.Errorf("moved are %v", keep.Move)
	}
}
