package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// sweeps applies a sweep of ten runs with a CPU each, at most this many of them at a time.
func (l *lab) sweeps(priority, most int) {
	l.Helper()
	s := domain.Sweep{
		Cluster: "lab", Name: "lr", Template: domain.Template{Command: []string{"train"}}, Priority: priority,
		MaxParallel: &most,
		Resources:   domain.ResourceRequirements{CPUs: 1}, Runs: map[string]map[string]string{},
	}
	for i := range 10 {
		s.Runs[fmt.Sprint("r", i)] = nil
	}
	_, err := reconcile.Reconciler{Engine: l}.PutSweep(l.Context(), s, true)
	l.must(nil, err)
}

// seeTo makes the controller look after the sweeps.
func (l *lab) seeTo(s *sweeper) {
	l.Helper()
	s.stirred = true
	_, err := s.look(l.Context(), l.now)
	l.must(nil, err)
}

func (l *lab) sweeper() *sweeper {
	return (&track{lab: l}).sweeper(l)
}

// running returns the number of active runs.
func (l *lab) running() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, o := range l.members {
		if o.Group == "lr" {
			n++
		}
	}
	return n
}

// A role yields to a sweep for as many runs as may be active, and only while they are: a controller that starts after
// that has nothing left to do for it.
func TestScalerGivesWayToSweep(t *testing.T) {
	l := newFullLab(t)
	s := l.controller()
	l.pass(s, time.Minute)
	l.sweeps(1, 3)
	runs := l.sweeper()
	l.seeTo(runs)
	if got := l.pass(s, 5*time.Second); !slices.Equal(got, []int{5}) {
		t.Fatalf("for three runs there are %v workers", got)
	}
	if got := l.pass(s, 5*time.Minute); !slices.Equal(got, []int{5}) || l.running() > 0 {
		t.Errorf("until the runs are started there are %v workers", got)
	}
	l.seeTo(runs)
	if got := l.pass(s, 5*time.Minute); !slices.Equal(got, []int{5}) || l.running() != 3 {
		t.Errorf("beside %d runs there are %v workers", l.running(), got)
	}
	if asked := l.asked(); len(asked) > 0 {
		t.Errorf("while as many runs are on as may be, %v ask for room", asked)
	}
	l.must(nil, reconcile.Reconciler{Engine: l}.DeleteSweep(t.Context(), "lr", nil))
	if got := l.pass(s, 5*time.Minute); got[len(got)-1] != 8 {
		t.Errorf("afterwards there are %v workers", got)
	}
}

// asked returns the names of those that wait for room.
func (l *lab) asked() (names []string) {
	l.Helper()
	requests, err := engine.List[domain.RoomRequest](l.Context(), l)
	l.must(nil, err)
	for name := range requests {
		names = append(names, name)
	}
	return names
}

// A sweep's request is deleted once none of its runs waits, whichever controller stored it.
func TestSweeperAsksNoMore(t *testing.T) {
	l := newFullLab(t)
	l.pass(l.controller(), time.Minute)
	l.sweeps(1, 3)
	l.seeTo(l.sweeper())
	if asked := l.asked(); !slices.Equal(asked, []string{"lr"}) {
		t.Fatalf("%v ask for room", asked)
	}
	id := documentOf[domain.SweepDocument](t, l.items, "lr").ID
	for i := range 10 {
		run := fmt.Sprint("r", i)
		edit(t, l.items, "lr/"+run, func(request *domain.SweepRequest) {
			request.Sweep, request.Run, request.ID, request.Want = "lr", run, id, domain.WishCancel
		})
	}
	l.seeTo(l.sweeper())
	if asked := l.asked(); len(asked) > 0 {
		t.Errorf("after all were cancelled, %v ask for room", asked)
	}
}

// A request may be withdrawn while a hook drains members for it: the hook is called off, and no member is removed.
func TestHookCalledOffWithWhoWaits(t *testing.T) {
	for name, test := range map[string]struct{ comes, goes func(l *lab) }{
		"an apply is cancelled": {func(l *lab) { l.asks(1, 3) }, func(l *lab) { l.withdraws("urgent") }},
		"an apply dies":         {func(l *lab) { l.asks(1, 3) }, func(l *lab) { l.holds("urgent", false) }},
		"a sweep is destroyed": {func(l *lab) { l.sweeps(1, 3); l.seeTo(l.sweeper()) }, func(l *lab) {
			l.must(nil, reconcile.Reconciler{Engine: l}.DeleteSweep(l.Context(), "lr", nil))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRebalancer(t)
			l := newFullLab(t, func(p *domain.AutoscalingPolicy) { p.Hooks.BeforeRemoval = r.lasting() })
			l.pass(l.controller(), time.Minute)
			w := l.watcher()
			test.comes(l)
			w.until("the hook to be at work", func() bool { asked, _ := r.seen(); return len(asked) > 2 })
			test.goes(l)
			off := "DELETE /changes/" + r.ids()[0]
			w.until("the hook to be called off",
				func() bool { asked, _ := r.seen(); return slices.Contains(asked, off) && w.idle() })
			if ids := r.ids(); len(ids) != 1 || l.count() != 8 {
				t.Errorf("the hook was called for the changes %v, and there are %d workers", ids, l.count())
			}
			if history := w.historyText(); !strings.Contains(history,
				"8 → 5 held 8 members are wanted now, so none is removed") {
				t.Errorf("the history says\n%s", history)
			}
		})
	}
}
