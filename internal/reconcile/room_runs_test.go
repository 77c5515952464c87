package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// runsAsk is the request of a sweep with this many waiting runs of one CPU each.
func runsAsk(name string, priority, runs int) domain.RoomRequest {
	spec := domain.Group{
		Cluster: "lab", Name: name, Framework: "none", Priority: priority,
		Roles: map[string]domain.Role{domain.WaitingRuns: {Resources: domain.ResourceRequirements{CPUs: 1}}},
	}
	return domain.RoomRequest{Spec: spec, Sweep: true, Since: epoch}.WithRuns(runs)
}

// Roles yield to a sweep for as many of its runs as possible, in turn with groups.
func TestShareWithRuns(t *testing.T) {
	bounded := runsAsk("lr", 1, 4)
	bounded.Most = map[string]int{"a": 1}
	for name, test := range map[string]struct {
		requests []domain.RoomRequest
		want     []string
	}{
		"for all": {[]domain.RoomRequest{runsAsk("lr", 1, 2)}, []string{"lr: low-worker-3 low-worker-2"}},
		"for some": {
			[]domain.RoomRequest{runsAsk("lr", 1, 64)}, []string{"lr: low-worker-3 low-worker-2 low-worker-1"},
		},
		"as its level says": {[]domain.RoomRequest{bounded}, []string{"lr: low-worker-3"}},
		"a group in turn after": {
			[]domain.RoomRequest{asks("urgent", 1, 2), runsAsk("lr", 2, 1)},
			[]string{"lr: low-worker-3", "urgent: low-worker-2 low-worker-1"},
		},
		"what is left by a group": {
			[]domain.RoomRequest{asks("urgent", 2, 2), runsAsk("lr", 1, 9)},
			[]string{"urgent: low-worker-3 low-worker-2", "lr: low-worker-1"},
		},
		"not to one that is as important": {
			[]domain.RoomRequest{runsAsk("lr", 0, 2)},
			[]string{`lr: no role gives way: role "worker" of group "low" has 4 members, and its policy needs 1. ` +
				`Roles under a policy give way to groups and sweeps with a higher priority: this one has 0, and would have room with 1`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := crowded(4)
			f.shares(t, 0, 4, 1, "low")
			if diff := cmp.Diff(test.want, f.share(t, test.requests...)); diff != "" {
				t.Errorf("who gives way (-want +got):\n%s", diff)
			}
		})
	}
}

// noKeeper stores nothing about runs.
type noKeeper struct{}

func (noKeeper) Batch(string) int                                         { return 1 }
func (noKeeper) KeepStarts(context.Context, []reconcile.StartedRun) error { return nil }

// A sweep requests room as long as its runs wait for room that roles could give. Neither these roles nor later applies
// take that room, and the sweep says what it waits for.
func TestRunsAskForRoom(t *testing.T) {
	f := crowded(4)
	f.shares(t, 0, 3, 1, "low")
	r := reconcile.Reconciler{Engine: f, Controller: true}
	spec := domain.Sweep{
		Cluster: "lab", Name: "lr", Template: domain.Template{Command: []string{"train"}}, Priority: 1,
		MaxParallel: new(2),
		Runs:        map[string]map[string]string{}, Resources: domain.ResourceRequirements{CPUs: 2},
	}
	for i := range 9 {
		spec.Runs[fmt.Sprint("r", i)] = nil
	}
	_, err := r.PutSweep(within(t), spec, true)
	must(t, err)
	start := func() []string {
		t.Helper()
		found, err := r.SweepRuns(within(t), "lr")
		must(t, err)
		queue := sweep.Queue{Document: found.Document, Spec: found.Spec, Keys: found.Spec.Keys(), Runs: found.Runs}
		admission, _, err := r.StartRuns(within(t), []sweep.Queue{queue}, noKeeper{})
		must(t, err)
		var started []string
		for _, s := range admission.Starts {
			started = append(started, s.Key)
		}
		return started
	}
	if started := start(); len(started) > 0 {
		t.Fatalf("without room %v start", started)
	}
	asked := documents[domain.RoomRequest](f)["lr"]
	if !asked.Sweep || asked.Runs() != 2 || asked.Spec.Priority != 1 {
		t.Fatalf("it asks for %+v", asked)
	}
	if start(); documents[domain.RoomRequest](f)["lr"].Revision != asked.Revision {
		t.Error("the same is asked for again")
	}
	if got := f.share(t, asked); !slices.Equal(got, []string{"lr: low-worker-2"}) { // min leaves room for one run
		t.Errorf("these give way: %q", got)
	}
	asked.Answer = "low gives way"
	_, err = engine.Put(t.Context(), f, asked)
	must(t, err)
	waits, err := r.SweepOutlook(within(t))
	must(t, err)
	if !strings.Contains(waits["lr"], "CPUs") || !strings.HasSuffix(waits["lr"], "; low gives way") {
		t.Errorf("it says %q", waits["lr"])
	}
	if more, short, err := r.Room(within(t), "low", "worker", 3); err != nil || more != 0 ||
		!strings.Contains(short, `(sweep "lr", with priority 1, waits for room, too, and comes first)`) {
		t.Errorf("there is room for %d: %s, %v", more, short, err)
	}
	f.grow(t, "low", 3, 2)
	if err := r.Update(within(t), sharer("other", 0, new(1))); err == nil ||
		!strings.Contains(err.Error(), `sweep "lr", with priority 1, waits for room, too`) {
		t.Errorf("the apply of a group that comes after ends with %v", err)
	}
	if started := start(); !slices.Equal(started, []string{"r0"}) {
		t.Errorf("with room for one %v start", started)
	}
	must(t, r.DeleteSweep(within(t), "lr", nil))
	if left := documents[domain.RoomRequest](f); len(left) > 0 {
		t.Errorf("after its end there is %+v", left)
	}
}

// Requests without a use are deleted: without policies nobody can yield, and a sweep may be gone or no longer wait. The
// request of a sweep that an apply is changing stays.
func TestRunsAskNoMore(t *testing.T) {
	f := crowded(4)
	group, gone, changed := asks("urgent", 1, 1), runsAsk("gone", 0, 1), runsAsk("changed", 0, 1)
	for _, request := range []domain.RoomRequest{group, gone, changed} {
		request.Revision = 1
		set(f, request)
	}
	r := reconcile.Reconciler{Engine: f, Controller: true}
	left := func() (names []string) {
		for name := range documents[domain.RoomRequest](f) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	_, _, err := r.StartRuns(within(t),
		[]sweep.Queue{{Spec: domain.Sweep{Name: "changed"}, Held: "it is being changed"}}, noKeeper{})
	must(t, err)
	if got := left(); !slices.Equal(got, []string{"changed", "urgent"}) {
		t.Errorf("there are requests of %v", got)
	}
	must(t, r.WithdrawRoom(within(t)))
	if got := left(); !slices.Equal(got, []string{"urgent"}) {
		t.Errorf("at the end there are requests of %v", got)
	}
}
