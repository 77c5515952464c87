package controller

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestDryRun: decisions are recorded, and nothing is done.
func TestDryRun(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) { p.DryRun = true })
	s := l.controller()
	l.load = 3
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{2}) {
		t.Errorf("the counts were %v", got)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	if diff := cmp.Diff([]string{"2 → 6 dry_run"}, l.changes()); diff != "" {
		t.Errorf("in the history (-want +got):\n%s", diff)
	}
}

// TestHeld: a group that an apply holds is not scaled, and the history says so.
func TestHeld(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	edit(t, l.items, "job", func(doc *domain.GroupDocument) { doc.Applying = true })
	l.load = 3
	if got := l.pass(s, 20*time.Second); !slices.Equal(got, []int{2}) {
		t.Errorf("while an apply is under way, the counts were %v", got)
	}
	edit(t, l.items, "job", func(doc *domain.GroupDocument) { doc.Applying = false })
	if got := l.pass(s, 20*time.Second); !slices.Equal(got, []int{2, 6}) && !slices.Equal(got, []int{6}) {
		t.Errorf("after it, the counts were %v", got)
	}
	entries := l.entries(t, l.now, autoscale.Selection{})
	if !slices.ContainsFunc(entries, func(e autoscale.Entry) bool {
		return strings.Contains(e.Why(), "6 wanted, but an apply of group")
	}) {
		t.Errorf("the history does not say what held it: %+v", entries)
	}
}

// TestInitialWithoutPlace: if the initial count can't be placed at all, the metrics decide.
func TestInitialWithoutPlace(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Initial = new(6)
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
	})
	l.requires(50) // of the 64 CPUs of each of two hosts
	l.load = 0.1
	if got := l.pass(l.controller(), 20*time.Second); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("the counts were %v", got)
	}
}

// TestPolicyChangesMeanwhile: a change that waits, here for members to be drained, is not carried out if its policy was
// replaced or deleted meanwhile.
func TestPolicyChangesMeanwhile(t *testing.T) {
	key := domain.PolicyKey("job", "worker")
	for name, test := range map[string]struct {
		change func(l *lab)
		says   string
	}{
		"paused": {func(l *lab) {
			policy := l.policy()
			policy.Paused = domain.PauseAll
			l.put(policy)
		}, "the policy has changed; deciding again"},
		"ending": {func(l *lab) { l.end(key) }, "the policy has ended"},
		"gone":   {func(l *lab) { l.drop(key) }, "the policy has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			var l *lab
			var once sync.Once
			hook := httptest.NewServer(
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) { once.Do(func() { test.change(l) }) }),
			)
			defer hook.Close()
			l = newLab(t, func(p *domain.AutoscalingPolicy) {
				p.Hooks.BeforeRemoval = &domain.ScalingHook{URL: hook.URL}
				p.ScaleIn.Stabilisation = new(domain.Duration(0))
			})
			s := l.controller()
			l.load = 0.1
			if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{2}) {
				t.Errorf("the counts were %v", got)
			}
			l.must(nil, s.history.Flush(t.Context(), l.now))
			if got := l.changes(); len(got) == 0 || !strings.HasPrefix(got[0], "2 → 1 held "+test.says) {
				t.Errorf("in the history: %q", got)
			}
		})
	}
}

// TestPolicyOfNewerBuild: a change is recorded even if its policy was replaced meanwhile by one that this build can't
// run.
func TestPolicyOfNewerBuild(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	replaced := make(chan struct{})
	var once sync.Once
	l.onStage = func(domain.MemberSpec) {
		once.Do(func() {
			policy := l.policy()
			policy.Min, policy.Max = 2, 1
			l.put(policy)
			close(replaced)
		})
	}
	l.load = 2
	l.must(nil, l.look(s))
	<-replaced
	l.must(nil, l.look(s))
	s.finish(<-s.outcomes, l.now)
	if f := s.followed["job/worker"]; !f.idle || !f.state.LastChange.Equal(l.now) {
		t.Errorf("the last change is said to be of %s", f.state.LastChange)
	}
}
