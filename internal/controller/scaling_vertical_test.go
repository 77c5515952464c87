package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// size returns the size that the policy has set for the workers.
func (l *lab) size() domain.Resources {
	l.Helper()
	return documentOf[domain.GroupDocument](l.T, l.items, "job").Sizes["worker"].Resources
}

// passSizing is pass, and also handles the results of changes of size.
func (l *lab) passSizing(s *scaler, d time.Duration) {
	l.Helper()
	for end := l.now.Add(d); l.now.Before(end); l.now = l.now.Add(time.Second) {
		l.must(nil, l.look(s))
		for _, f := range s.followed {
			if f.changing {
				s.finish(<-s.outcomes, l.now)
			}
			if f.resizing {
				s.finishResize(<-s.resizes)
			}
		}
	}
}

func verticalLab(t *testing.T, changes func(v *domain.VerticalScaling)) *lab {
	t.Helper()
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Metrics = nil
		p.Vertical = &domain.VerticalScaling{
			CPUs: &domain.AmountBounds{Min: 0.1, Max: 4}, LearnFor: new(domain.Duration(20 * time.Second)),
			Apply: domain.ApplyAtStart,
		}
		changes(p.Vertical)
	})
	l.requires(1)
	l.must(nil,
		reconcile.Reconciler{Engine: l}.Update(t.Context(), documentOf[domain.GroupDocument](t, l.items, "job").Spec))
	l.load = 4 // of two members
	return l
}

// TestVerticalApplied: usage is recommended from the first decision on, and applied once enough was learned. A
// successor remembers it, and a policy that no longer applies it restores the declared size.
func TestVerticalApplied(t *testing.T) {
	l := verticalLab(t, func(*domain.VerticalScaling) {})
	s := l.controller()
	l.passSizing(s, 12*time.Second)
	if size := l.size(); size != (domain.Resources{}) {
		t.Errorf("before it has learned anything, the size is %+v", size)
	}
	if got := s.board.statuses()[0].Recommended["cpus"]; got < 2*1.15 || got > 2*1.15*1.06 {
		t.Errorf("the exported recommendation is %v", got)
	}
	l.must(nil, s.keep(t.Context(), l.now.Add(time.Minute)))
	s = l.controller()
	l.passSizing(s, 20*time.Second)
	size := l.size()
	if size.CPUs < 2*1.15 || size.CPUs > 2*1.15*1.06 || size.MemoryMiB != 0 || l.count() != 2 {
		t.Errorf("the size is %+v, the count %d", size, l.count())
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	entries := l.entries(t, l.now, autoscale.Selection{OnlyChanges: true})
	if len(entries) != 1 || !strings.HasPrefix(entries[0].Resized, "members started from now on request 2.") {
		t.Errorf("the history has %+v", entries)
	}
	l.passSizing(s, time.Minute)
	if again := l.size(); again != size {
		t.Errorf("the size goes on to be changed, to %+v", again)
	}
	policy := l.policy()
	policy.Vertical.Apply = domain.ApplyNever
	l.put(policy)
	l.passSizing(s, 10*time.Second)
	if size := l.size(); size != (domain.Resources{}) {
		t.Errorf("as it applies nothing any more, the size is %+v", size)
	}
}

// TestVerticalHeld: a size without room is reported once for all decisions, and retried after a while.
func TestVerticalHeld(t *testing.T) {
	l := verticalLab(t, func(v *domain.VerticalScaling) { v.CPUs.Max, v.LearnFor = 100, new(domain.Duration(0)) })
	l.load = 150
	s := l.controller()
	l.passSizing(s, 20*time.Second)
	if size := l.size(); size != (domain.Resources{}) {
		t.Errorf("the size is %+v", size)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	held := func(e autoscale.Entry) bool { return strings.HasPrefix(e.Resized, "held: no room for that") }
	if entries := l.entries(t, l.now, autoscale.Selection{}); !slices.ContainsFunc(entries, held) {
		t.Errorf("the history has %+v", entries)
	}
	edit(t, l.items, "", func(doc *domain.ClusterDocument) {
		for name, host := range doc.Spec.Hosts {
			host.Capacity.CPUs = 1000
			doc.Spec.Hosts[name] = host
		}
	})
	l.passSizing(s, resizeRetry)
	if size := l.size(); size.CPUs < 75 {
		t.Errorf("with room for it, the size is %+v", size)
	}
}

// TestVerticalHandsOver: a new controller hands over the stored size, as whoever stored it may have died before that.
func TestVerticalHandsOver(t *testing.T) {
	l := verticalLab(t, func(v *domain.VerticalScaling) { v.LearnFor = new(domain.Duration(time.Hour)) })
	l.handsOver = true
	edit(t, l.items, "job", func(doc *domain.GroupDocument) {
		doc.Sizes = map[string]domain.Size{"worker": {Resources: domain.Resources{CPUs: 2.4}, At: noon}}
	})
	staged := 0
	l.onStage = func(spec domain.MemberSpec) {
		if staged++; spec.Resources.CPUs != 2.4 {
			t.Errorf("%s is handed %+v", spec.Name, spec.Resources)
		}
	}
	l.passSizing(l.controller(), 30*time.Second)
	if staged != 2 {
		t.Errorf("%d members were handed their size, want each of two once", staged)
	}
}

// TestUseQuestions: usage is asked over windows without gaps.
func TestUseQuestions(t *testing.T) {
	policy := domain.AutoscalingPolicy{
		Group: "job", Role: "worker",
		Vertical: &domain.VerticalScaling{CPUs: &domain.AmountBounds{}, MemoryMiB: &domain.AmountBounds{}},
	}
	for every, window := range map[time.Duration]time.Duration{
		time.Second: domain.DefaultAgentWindow, 2 * time.Minute: 2 * time.Minute, time.Hour: engine.LongestWindow,
	} {
		policy.Interval = new(domain.Duration(every))
		asked := useQuestions(policy)
		if len(asked) != 2 || asked[0].Window.Or(0) != window || asked[1].Aggregation != domain.AggregateMax {
			t.Errorf("every %s: %+v", every, asked)
		}
	}
}

// TestVerticalDuringHook: a member that ran out of memory gets more while a before_removal hook is at work.
func TestVerticalDuringHook(t *testing.T) {
	r := newRebalancer(t)
	l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
	edit(t, l.items, "job", func(doc *domain.GroupDocument) {
		role := doc.Spec.Roles["worker"]
		role.Resources.MemoryMiB = 100
		doc.Spec.Roles["worker"] = role
	})
	policy := l.policy()
	policy.Vertical = &domain.VerticalScaling{
		MemoryMiB: &domain.AmountBounds{Min: 10, Max: 1000}, Apply: domain.ApplyAtStart,
	}
	l.put(policy)
	l.load = 0.1
	w := l.watcher()
	w.until("the hook to be at work", func() bool { return len(r.ids()) > 0 })
	l.mu.Lock()
	o := l.members[worker(0)]
	o.OutOfMemory = &domain.OutOfMemory{At: l.now, LimitMiB: 100}
	l.members[worker(0)] = o
	l.mu.Unlock()
	w.until("more memory", func() bool { return l.size().MemoryMiB > 100 })
	if !w.followed["job/worker"].changing || l.count() != 2 {
		t.Errorf("the hook has ended; the count is %d", l.count())
	}
}
