package controller

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// spark makes the workers members without identity, so that any of them may go.
func (l *lab) spark() {
	doc := edit(l.T, l.items, "job", func(doc *domain.GroupDocument) {
		doc.Spec.Framework = "spark"
		doc.Spec.Roles["master"] = domain.Role{Replicas: new(1), Template: doc.Spec.Roles["worker"].Template}
	})
	l.must(nil, reconcile.Reconciler{Engine: l}.Update(l.Context(), doc.Spec))
}

// worker returns the name of a worker of the lab.
func worker(i int) string { return domain.MemberName("job", "worker", i) }

// TestLeaving: members are removed in the policy's order, missing ones first. Busy ones stay, or all stay if the engine
// chooses which ones are removed.
func TestLeaving(t *testing.T) {
	byCPU := &domain.BusyGuard{CPUPercent: new(50.0)}
	for name, test := range map[string]struct {
		guards domain.ScalingGuards
		hook   *domain.ScalingHook
		// works are the busy workers, missing the missing ones, and unmeasured those without a measurement, of which
		// pending do not run yet; identity gives them one, and schedules lets the engine choose which ones are removed.
		works, missing      []int
		unmeasured, pending []int
		identity, schedules bool
		// chief makes the first worker the chief, and yields are those whose room is needed.
		chief  bool
		yields []string
		want   []string
		// there are those of them that can be drained, if they differ from want; count is their
		// number, if they have no names.
		there []string
		count int
		says  string
	}{
		"by index": {want: []string{worker(3), worker(2)}},
		"the least busy": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy}, works: []int{0, 3},
			want: []string{worker(2), worker(1)},
		},
		"the least busy, of whom that is known": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy}, works: []int{0, 3}, unmeasured: []int{1},
			want: []string{worker(2), worker(3)},
		},
		"the least busy, some of which do not run yet": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy}, works: []int{0, 3}, unmeasured: []int{1, 2},
			pending: []int{1}, want: []string{worker(1), worker(3)},
		},
		"the chief last": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy}, works: []int{1, 2, 3}, chief: true,
			want: []string{worker(3), worker(2)},
		},
		"the chief only after all others": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy, Busy: byCPU}, works: []int{1, 2}, chief: true,
			want: []string{worker(3)}, says: "is busy",
		},
		"the chief, whose room is needed, only after all others": {
			yields: []string{worker(0), worker(1)}, chief: true, says: "job-worker-0 stays: the chief is removed last",
		},
		"from the most loaded host": {
			guards: domain.ScalingGuards{Remove: domain.RemoveMostLoadedHost}, want: []string{worker(3), worker(1)},
		},
		"idle ones, of any": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy, Busy: byCPU}, works: []int{0, 3, 2},
			want: []string{worker(1)}, says: "is busy",
		},
		"idle ones, until one works": {
			guards: domain.ScalingGuards{Busy: byCPU}, works: []int{2}, want: []string{worker(3)},
			says: "job-worker-2 stays: it is busy (its CPU at 90 %)",
		},
		"all work": {
			guards: domain.ScalingGuards{Busy: byCPU}, works: []int{0, 1, 2, 3},
			says: "job-worker-3 stays: it is busy (its CPU at 90 %)",
		},
		"unknown whether it is busy": {
			guards: domain.ScalingGuards{Busy: &domain.BusyGuard{GPUPercent: new(50.0)}},
			says:   "job-worker-3 stays: it is unknown whether it is busy",
		},

		"who is missing": {
			missing: []int{1}, want: []string{worker(1), worker(3)}, there: []string{worker(3)},
		},
		"who is missing, and then the idle": {
			guards: domain.ScalingGuards{Remove: domain.RemoveLeastBusy}, works: []int{2, 3}, missing: []int{0},
			want: []string{worker(0), worker(1)}, there: []string{worker(1)},
		},
		"who is missing, while others work": {
			guards: domain.ScalingGuards{Busy: byCPU}, works: []int{0, 2, 3}, missing: []int{1},
			want: []string{worker(1)}, there: []string{}, says: "job-worker-3 stays",
		},
		"by index, with an identity": {
			identity: true, missing: []int{0, 3}, want: []string{worker(3), worker(2)}, there: []string{worker(2)},
		},
		"by index, with an identity, all there": {
			identity: true, missing: []int{0}, want: []string{worker(3), worker(2)},
		},

		"whom the engine chooses": {schedules: true, count: 2},
		"whom the engine chooses, while nobody works": {
			schedules: true, guards: domain.ScalingGuards{Busy: byCPU}, count: 2,
		},
		"whom the engine chooses, while one works": {
			schedules: true, guards: domain.ScalingGuards{Busy: byCPU}, works: []int{1},
			says: "all members stay, as the engine may choose job-worker-1: it is busy (its CPU at 90 %)",
		},
		"whom the engine chooses, without a name": {
			schedules: true, hook: &domain.ScalingHook{URL: "http://broker"},
			says: "hook before_removal can't be called",
		},
		"with an identity, whatever the engine chooses": {
			schedules: true, identity: true, guards: domain.ScalingGuards{Busy: byCPU}, works: []int{1},
			want: []string{worker(3), worker(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t,
				func(p *domain.AutoscalingPolicy) { p.Guards, p.Hooks.BeforeRemoval = test.guards, test.hook })
			l.requires(1)
			if !test.identity {
				l.spark()
			}
			l.scale(2, 4)
			for i := range 4 {
				l.loads[worker(i)] = 0.1
			}
			for _, i := range test.works {
				l.loads[worker(i)] = 0.9
			}
			for _, i := range test.unmeasured {
				l.loads[worker(i)] = math.NaN()
			}
			for _, i := range test.pending {
				l.starts(worker(i), domain.StatePending)
			}
			if test.chief {
				edit(t, l.items, "job", func(doc *domain.GroupDocument) {
					doc.Spec.Completion = domain.Completion{When: domain.WhenChief, Roles: []string{"worker"}}
				})
			}
			for _, i := range test.missing {
				delete(l.members, worker(i))
			}
			l.schedules = test.schedules
			s := l.controller()
			observation, err := s.reconciler.Observation(t.Context())
			l.must(nil, err)
			for i := range observation.Members["job"] {
				o := &observation.Members["job"][i]
				o.Host = []string{"a", "b"}[o.Index%2]
			}
			gone, err := s.leaving(t.Context(), l.policy(),
				change{decision: autoscale.Decision{From: 4, To: 2}, observation: observation, yields: test.yields})
			why := gone.why
			if err != nil {
				why = err.Error()
			}
			if !slices.Equal(gone.members, test.want) || !strings.Contains(why, test.says) {
				t.Errorf("%q go, %q; want %q, %q", gone.members, why, test.want, test.says)
			}
			if test.there == nil {
				test.there = test.want
			}
			if !slices.Equal(gone.there, test.there) || gone.count != max(len(test.want), test.count) {
				t.Errorf("%d go, of which %q are there; want %d, %q", gone.count, gone.there,
					max(len(test.want), test.count), test.there)
			}
		})
	}
}

// TestDrain: the hook is called about members before they are removed, and they stay if it fails.
func TestDrain(t *testing.T) {
	var fails atomic.Bool
	bodies := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1000)
		n, _ := r.Body.Read(body)
		bodies <- string(body[:n])
		if fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer hook.Close()
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Hooks.BeforeRemoval = &domain.ScalingHook{URL: hook.URL}
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
	})
	s := l.controller()
	l.load = 0.1
	fails.Store(true)
	if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{2}) {
		t.Errorf("with a hook that fails, the counts were %v", got)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	if got := l.changes(); len(got) == 0 ||
		!strings.HasPrefix(got[0],
			"2 → 1 held hook before_removal failed for job-worker-1, so no member is removed: ") {
		t.Errorf("in the history: %q", got)
	}
	first := <-bodies
	if id, rest, _ := strings.Cut(strings.TrimPrefix(first, `{"id":"`), `",`); len(id) != 26 ||
		rest !=
			`"hook":"before_removal","cluster":"lab","group":"job","role":"worker","from":2,"to":1,"members":["job-worker-1"]}` {
		t.Errorf("it received %s", first)
	}
	if again := <-bodies; again != first {
		t.Errorf("the same change was sent as %s, and then as %s", first, again)
	}
	fails.Store(false)
	if got := l.pass(s, 10*time.Second); got[len(got)-1] != 1 {
		t.Errorf("with one that succeeds, the counts were %v", got)
	}
}

// TestDrainedInVain: members that were drained but stay, as the change was not carried out, are in the history, and are
// drained again the next time.
func TestDrainedInVain(t *testing.T) {
	var drained atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { drained.Add(1) }))
	defer hook.Close()
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Hooks.BeforeRemoval = &domain.ScalingHook{URL: hook.URL}
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
	})
	s := l.controller()
	l.load = 0.1
	l.faults["Lock"] = errors.New("an apply came in between")
	l.pass(s, 10*time.Second)
	l.must(nil, s.history.Flush(t.Context(), l.now))
	want := []string{
		"2 → 1 failed an apply came in between; hook before_removal has finished for members that are still there: job-worker-1",
		"2 → 1 done",
	}
	if diff := cmp.Diff(want, l.changes()); diff != "" || drained.Load() != 2 {
		t.Errorf("drained %d times; in the history (-want +got):\n%s", drained.Load(), diff)
	}
}

// full takes all slots of a semaphore.
func full(places chan struct{}) {
	for range cap(places) {
		places <- struct{}{}
	}
}

// TestMoreWaitsForNobody: a role grows even while the maximum number of roles is shrinking.
func TestMoreWaitsForNobody(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) { p.ScaleIn.Stabilisation = new(domain.Duration(0)) })
	s := l.controller()
	full(s.turns.ins)
	full(s.turns.requests)
	l.load = 3
	if got := l.pass(s, time.Second); !slices.Equal(got, []int{6}) {
		t.Errorf("the counts were %v", got)
	}
	s.turns.longest = time.Millisecond
	l.load = 0.1
	if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{6}) {
		t.Errorf("without a turn for fewer, the counts were %v", got)
	}
}

// TestLateTurns: a change that has waited too long is not carried out but decided again, and the history says so.
func TestLateTurns(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	s.turns.longest = time.Millisecond
	full(s.turns.outs)
	l.load = 1.5
	if got := l.pass(s, 6*time.Second); !slices.Equal(got, []int{2}) {
		t.Errorf("without a turn, the counts were %v", got)
	}
	l.load = 3
	for range changesAtOnce {
		<-s.turns.outs
	}
	s.turns.longest = time.Minute
	l.pass(s, 5*time.Second)
	l.must(nil, s.history.Flush(t.Context(), l.now))
	const held = "2 → 3 held waited 1ms for changes of other roles; deciding again"
	if diff := cmp.Diff([]string{held, "2 → 6 done"}, l.changes()); diff != "" || len(s.turns.outs) > 0 ||
		s.changing > 0 {
		t.Errorf("%d places are taken, %d changes under way; in the history (-want +got):\n%s", len(s.turns.outs),
			s.changing, diff)
	}
}

// TestDrainingTakesNoTurn: draining, which may take long, takes no slot, so that other roles can shrink.
func TestDrainingTakesNoTurn(t *testing.T) {
	var l *lab
	var s *scaler
	taken := make(chan int, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken <- len(s.turns.ins) }))
	defer hook.Close()
	l = newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Hooks.BeforeRemoval = &domain.ScalingHook{URL: hook.URL}
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
	})
	s = l.controller()
	l.load = 0.1
	l.pass(s, time.Second)
	if n := <-taken; n != 0 || l.count() != 1 || len(s.turns.ins)+len(s.turns.requests) > 0 {
		t.Errorf("%d places were taken; the count is %d", n, l.count())
	}
}
