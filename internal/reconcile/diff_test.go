package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// observe returns the members of a decision, all running in this run.
func observe(d reconcile.Decision, run int) []domain.Observed {
	var observed []domain.Observed
	for i, m := range d.Members {
		observed = append(observed, domain.Observed{
			Name: m.Name, Group: d.Document.Spec.Name, Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: d.Layout.Hash(i), Run: run, State: domain.StateRunning, RunStartedAt: new(epoch),
		})
	}
	return observed
}

// TestDiff: a group of ps-0, worker-0 and worker-1 whose minimum run is 3.
func TestDiff(t *testing.T) {
	doc := stored(t, group(1, 2), 5)
	doc.MinRun = 3
	const ps, w0, w1 = 0, 1, 2
	for name, c := range map[string]struct {
		change func(observed []domain.Observed) []domain.Observed
		// after is set if the last apply did not finish.
		after bool
		want  []string
	}{
		"as desired": {func(o []domain.Observed) []domain.Observed { return o }, true, nil},
		"nothing there": {func([]domain.Observed) []domain.Observed { return nil }, false, []string{
			"start mnist-ps-0 (0): missing", "start mnist-worker-0 (1): missing", "start mnist-worker-1 (2): missing",
		}},
		"ended, each in its way": {func(o []domain.Observed) []domain.Observed {
			o[ps].State, o[w0].State, o[w1].State = domain.StateStopped, domain.StateCompleted, domain.StateFailed
			return o
		}, false, nil},
		"on the way": {func(o []domain.Observed) []domain.Observed {
			o[ps].State, o[w0].State = domain.StatePending, domain.StateRestarting
			return o
		}, true, nil},
		"failed in an apply that failed": {func(o []domain.Observed) []domain.Observed {
			o[ps].State, o[w0].State, o[w1].State = domain.StateStopped, domain.StateCompleted, domain.StateFailed
			return o
		}, true, []string{"restart mnist-worker-1 (2): failed in an earlier apply"}},
		"one missing": {func(o []domain.Observed) []domain.Observed {
			return append(o[:w0:w0], o[w1])
		}, false, []string{"start mnist-worker-0 (1): missing"}},
		"another specification": {func(o []domain.Observed) []domain.Observed {
			o[w0].Hash = "older"
			return o
		}, false, []string{"restart mnist-worker-0 (1): specification changed"}},
		"an older run, completed": {func(o []domain.Observed) []domain.Observed {
			o[w0].Run, o[w0].State = 2, domain.StateCompleted
			return o
		}, false, []string{"restart mnist-worker-0 (1): rerun"}},
		"a later run": {func(o []domain.Observed) []domain.Observed {
			o[w0].Run = 5
			return o
		}, false, nil},
		"removals come first": {func(o []domain.Observed) []domain.Observed {
			o[ps].Hash = "older"
			return append(o[:w1:w1], domain.Observed{Name: "mnist-worker-2"}, domain.Observed{Name: "mnist-worker-3"})
		}, false, []string{
			"remove mnist-worker-2: not in the specification", "remove mnist-worker-3: not in the specification",
			"restart mnist-ps-0 (0): specification changed", "start mnist-worker-1 (2): missing",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := doc
			doc.Applying = c.after
			d := decide(t, lab(doc), doc.Spec)
			var got []string
			for _, change := range reconcile.Diff(d, c.change(observe(d, 3))) {
				index := ""
				if change.Action != reconcile.ActionRemove {
					index = fmt.Sprintf(" (%d)", change.Index)
				}
				got = append(got, fmt.Sprintf("%s %s%s: %s", change.Action, change.Member, index, change.Reason))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFoundMembers(t *testing.T) {
	for name, c := range map[string]struct {
		applying bool
		want     []string
	}{
		"after an apply that ended well": {false, []string{"mnist-ps-0", "mnist-worker-1"}},
		"after one that failed":          {true, []string{"mnist-ps-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := stored(t, group(1, 3), 5)
			doc.Applying = c.applying
			view := lab()
			d := reconcile.Current(view.Traits, view.Inventory.Hosts, doc)
			observed := observe(d, 3)
			observed[1].Hash = "older"
			observed[2].State = domain.StateFailed
			observed = append(observed[:3:3], domain.Observed{Name: "mnist-worker-9"})
			var got []string
			for _, m := range (reconcile.Group{Decision: d, Observed: observed}).Found().Members {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}
