package controller

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// fills makes the workers' policy take all room, a CPU for each worker.
func fills(p *domain.AutoscalingPolicy) {
	p.Max = 20
	p.Metrics = map[string]domain.ScalingMetric{
		"room": {Algorithm: domain.ScalingAlgorithm{IdleRoom: &domain.IdleRoomAlgorithm{}}},
	}
}

// newFullLab returns a lab with two hosts of four CPUs each, whose room the workers are to take.
func newFullLab(t *testing.T, changes ...func(p *domain.AutoscalingPolicy)) *lab {
	t.Helper()
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		fills(p)
		for _, change := range changes {
			change(p)
		}
	})
	l.requires(1)
	edit(t, l.items, "", func(doc *domain.ClusterDocument) {
		for name, host := range doc.Spec.Hosts {
			host.Capacity.CPUs = 4
			doc.Spec.Hosts[name] = host
		}
	})
	return l
}

// asks stores the request of an apply for members with a CPU each, and holds its group's lock.
func (l *lab) asks(priority, members int) {
	const group = "urgent"
	l.Helper()
	l.holds(group, true)
	edit(l.T, l.items, group, func(request *domain.RoomRequest) {
		request.Since = l.now
		request.Spec = domain.Group{
			Cluster: "lab", Name: group, Framework: "none", RestartScope: domain.ScopeMember,
			WaitFor: domain.WaitRunning, Priority: priority,
			Completion: domain.Completion{When: domain.WhenNever},
			Roles: map[string]domain.Role{"main": {
				Template: domain.Template{Command: []string{"work"}}, Replicas: &members,
				Resources: domain.ResourceRequirements{CPUs: 1},
			}},
		}
	})
}

// holds takes or releases the lock of a group for somebody else.
func (l *lab) holds(group string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[reconcile.GroupLock(group)] = held
}

// gives lets an apply get the room that it waits for: the apply ends.
func (l *lab) gives(group string) {
	l.Helper()
	spec := documentOf[domain.RoomRequest](l.T, l.items, group).Spec
	l.withdraws(group)
	l.must(nil, reconcile.Reconciler{Engine: l}.Update(l.Context(), spec))
}

func (l *lab) withdraws(group string) {
	l.Helper()
	l.holds(group, false)
	l.must(nil, engine.Delete[domain.RoomRequest](l.Context(), l.items, group))
}

// answer returns the controller's answer to the request.
func (l *lab) answer() string {
	l.Helper()
	return documentOf[domain.RoomRequest](l.T, l.items, "urgent").Answer
}

// A role grows into all the room that there is, yields to a higher priority as far as needed, and takes the room back.
func TestScalerSharesRoom(t *testing.T) {
	l := newFullLab(t)
	s := l.controller()
	if got := l.pass(s, time.Minute); got[len(got)-1] != 8 {
		t.Fatalf("there are %v workers", got)
	}
	l.asks(1, 3)
	if got := l.pass(s, 5*time.Second); !slices.Equal(got, []int{5}) {
		t.Fatalf("for three others there are %v workers", got)
	}
	if answer := l.answer(); answer != "there is room" {
		t.Errorf("the waiting group's answer is %q", answer)
	}
	if got := l.pass(s, 5*time.Minute); !slices.Equal(got, []int{5}) {
		t.Errorf("while the others wait for their turn there are %v workers", got)
	}
	l.gives("urgent")
	if got := l.pass(s, 5*time.Minute); !slices.Equal(got, []int{5}) {
		t.Errorf("beside the others there are %v workers", got)
	}
	l.must(nil, reconcile.Reconciler{Engine: l}.Destroy(t.Context(), "urgent"))
	if got := l.pass(s, 5*time.Minute); got[len(got)-1] != 8 {
		t.Errorf("afterwards there are %v workers", got)
	}
	scaled := slices.DeleteFunc(l.entries(t, l.now, autoscale.Selection{OnlyChanges: true}),
		func(e autoscale.Entry) bool { return !e.Scaled() || e.To > e.From })
	if len(scaled) != 1 ||
		!strings.Contains(scaled[0].Why(), `gives way to group "urgent", with priority 1, down to 5 members`) {
		t.Errorf("the history has %+v", scaled)
	}
}

// No role yields to the same priority, for a request that can't be met, or to an apply that has died.
func TestScalerGivesNoRoom(t *testing.T) {
	for name, test := range map[string]struct {
		change            func(p *domain.AutoscalingPolicy)
		priority, members int
		dead              bool
		says              string
	}{
		"as important": {func(*domain.AutoscalingPolicy) {}, 0, 2, false, "would have room with 1"},
		"too many": {
			func(*domain.AutoscalingPolicy) {}, 1, 8, false, "no role gives way: there would still be no room",
		},
		"an apply of none": {func(*domain.AutoscalingPolicy) {}, 1, 2, true, ""},
		"it is paused": {
			func(p *domain.AutoscalingPolicy) { p.Paused = domain.PauseIn }, 1, 2, false, "its policy is paused",
		},
		"it is tried out": {
			func(p *domain.AutoscalingPolicy) { p.DryRun = true }, 1, 2, false, "its policy is a dry run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFullLab(t)
			s := l.controller()
			l.pass(s, time.Minute)
			policy := l.policy()
			test.change(&policy)
			l.put(policy)
			l.asks(test.priority, test.members)
			l.holds("urgent", !test.dead)
			if got := l.pass(s, 10*time.Minute); !slices.Equal(got, []int{8}) {
				t.Errorf("there are %v workers", got)
			}
			if test.dead {
				if _, err := engine.Get[domain.RoomRequest](t.Context(), l.items, "urgent"); err == nil {
					t.Error("the request is still there")
				}
				return
			}
			if answer := l.answer(); !strings.Contains(answer, test.says) {
				t.Errorf("the waiting group's answer is %q", answer)
			}
		})
	}
}

// A guard keeps the members, and the request's answer says so. Once it allows it they go, and no other role
// has yielded for nothing.
func TestScalerGuardsRoom(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if busy.Load() {
			_, _ = w.Write([]byte("1")) // the client has gone
			return
		}
		_, _ = w.Write([]byte("0"))
	}))
	t.Cleanup(endpoint.Close)
	l := newFullLab(t, func(p *domain.AutoscalingPolicy) {
		p.Guards.Busy = &domain.BusyGuard{GuardSource: domain.GuardSource{HTTP: &domain.HTTPQueue{URL: endpoint.URL}}}
		p.Interval = new(domain.Duration(time.Hour)) // the request makes it ask earlier
	})
	s := l.controller()
	for l.count() < 8 {
		l.must(nil, l.look(s))
		for _, f := range s.followed {
			if f.changing {
				s.finish(<-s.outcomes, l.now)
			}
		}
		l.now = l.now.Add(time.Hour)
	}
	l.asks(1, 3)
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{8}) {
		t.Fatalf("while it is busy there are %v workers", got)
	}
	if answer := l.answer(); !strings.Contains(answer, "but it keeps 8: 1 wanted, but the role is busy") {
		t.Errorf("the waiting group's answer is %q", answer)
	}
	busy.Store(false)
	if got := l.pass(s, 10*time.Second); got[len(got)-1] != 5 {
		t.Errorf("afterwards there are %v workers", got)
	}
}

// If a member that should go is busy, all stay, and another role is tried.
func TestScalerGivesNothingInVain(t *testing.T) {
	l := newFullLab(t, func(p *domain.AutoscalingPolicy) { p.Guards.Busy = &domain.BusyGuard{CPUPercent: new(50.0)} })
	s := l.controller()
	l.pass(s, time.Minute)
	l.mu.Lock()
	l.loads[worker(6)] = 0.9
	l.mu.Unlock()
	l.asks(1, 3)
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{8}) {
		t.Fatalf("while one works there are %v workers", got)
	}
	if answer := l.answer(); !strings.Contains(answer,
		"but it keeps 8: job-worker-6 stays: it is busy (its CPU at 90 %)") {
		t.Errorf("the waiting group's answer is %q", answer)
	}
	l.mu.Lock()
	l.loads[worker(6)] = 0
	l.mu.Unlock()
	if got := l.pass(l.controller(), time.Minute); got[len(got)-1] != 5 {
		t.Errorf("afterwards there are %v workers", got)
	}
}

// A successor continues with the requests of a controller that died.
func TestScalerDiesWhileSomebodyWaits(t *testing.T) {
	l := newFullLab(t)
	l.pass(l.controller(), time.Minute)
	l.asks(1, 3)
	l.must(nil, l.look(l.controller())) // it has decided, no more
	if got := l.pass(l.controller(), 10*time.Second); got[len(got)-1] != 5 {
		t.Errorf("there are %v workers", got)
	}
}

// A request may be withdrawn while members go without any hook: they go, and nothing is reported as called off.
func TestScalerCallsOffHooksAlone(t *testing.T) {
	l := newFullLab(t)
	s := l.controller()
	l.pass(s, time.Minute)
	l.asks(1, 3)
	for range changesAtOnce {
		s.turns.ins <- struct{}{}
	}
	f := s.followed["job/worker"]
	for !f.changing {
		l.must(nil, l.look(s))
		l.now = l.now.Add(time.Second)
	}
	l.withdraws("urgent")
	l.must(nil, l.look(s))
	for range changesAtOnce {
		<-s.turns.ins
	}
	s.finish(<-s.outcomes, l.now)
	if n := l.count(); n != 5 {
		t.Errorf("there are %d workers", n)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	for _, e := range l.entries(t, l.now, autoscale.Selection{}) {
		if strings.Contains(e.OutcomeWhy, "called off") {
			t.Errorf("the history says %+v", e)
		}
	}
}

// A role whose hook fails after a long time has refused only then: it is not asked again at once.
func TestScalerRefusesLate(t *testing.T) {
	r := newRebalancer(t)
	l := newFullLab(t, func(p *domain.AutoscalingPolicy) { p.Hooks.BeforeRemoval = r.lasting() })
	w := l.watcher()
	l.pass(w.scaler, time.Minute)
	l.asks(1, 3)
	w.until("the hook to be at work", func() bool { return len(r.ids()) > 0 })
	l.now = l.now.Add(2 * usualRefusal)
	r.answers(http.StatusConflict, "")
	w.until("the hook to fail", func() bool { return !w.followed["job/worker"].changing })
	w.step()
	if answer := l.answer(); !strings.Contains(answer, "but it keeps 8: hook before_removal failed") {
		t.Errorf("the waiting group's answer is %q", answer)
	}
}
