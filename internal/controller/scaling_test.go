package controller

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func plain(*domain.AutoscalingPolicy) {}

// changes returns the changes in the stored history, in words.
func (l *lab) changes() (lines []string) {
	l.Helper()
	for _, e := range l.entries(l.T, l.now, autoscale.Selection{OnlyChanges: true}) {
		lines = append(lines, strings.TrimSpace(strings.Join([]string{
			string(rune('0' + e.From)), "→", string(rune('0' + e.To)), string(e.Outcome), e.OutcomeWhy,
		}, " ")))
	}
	return lines
}

// TestScaler: the count follows a load out and in, and each change is in the history.
func TestScaler(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	l.load = 1
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{2}) {
		t.Errorf("with a load for two, the counts were %v", got)
	}
	l.load = 2.4
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{5}) {
		t.Errorf("with a load for five, the counts were %v", got)
	}
	l.load = 0.4
	if got := l.pass(s, 50*time.Second); !slices.Equal(got, []int{5}) {
		t.Errorf("before the time of stabilisation is over, the counts were %v", got)
	}
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{5, 1}) {
		t.Errorf("after it, the counts were %v", got)
	}
	if diff := cmp.Diff([]string{"2 → 5 done", "5 → 1 done"}, l.changes()); diff != "" {
		t.Errorf("in the history (-want +got):\n%s", diff)
	}
	status := s.board.statuses()
	if len(status) != 1 || status[0].Current != 1 || status[0].Decisions["done"] != 2 || status[0].Max != 6 {
		t.Errorf("shown is %+v", status)
	}
}

// TestScalerBounds: a change of the bounds takes effect with the next look, before any metric is read.
func TestScalerBounds(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	l.load = 1
	l.pass(s, 12*time.Second)
	policy := l.policy()
	policy.Min, policy.Max = 4, 5
	l.put(policy)
	if got := l.pass(s, time.Second); !slices.Equal(got, []int{4}) {
		t.Errorf("with min = 4, the counts are %v", got)
	}
	policy.Min, policy.Max = 0, 0
	l.put(policy)
	if got := l.pass(s, time.Second); !slices.Equal(got, []int{0}) {
		t.Errorf("with max = 0, the counts are %v", got)
	}
	l.drop(policy.Key())
	l.load = 5
	if got := l.pass(s, time.Minute); !slices.Equal(got, []int{0}) || len(s.followed) > 0 ||
		len(s.board.statuses()) > 0 {
		t.Errorf("without a policy, the counts are %v", got)
	}
}

// TestScalerWritesRarely: a change that is refused again and again is written from time to time only.
func TestScalerWritesRarely(t *testing.T) {
	drain := httptest.NewServer(http.NotFoundHandler())
	defer drain.Close()
	l := newLab(t, func(p *domain.AutoscalingPolicy) { p.Hooks.BeforeRemoval = &domain.ScalingHook{URL: drain.URL} })
	s := l.controller()
	l.load = 0.5
	l.pass(s, 2*time.Minute)
	l.calls = nil
	if got := l.pass(s, 5*time.Minute); !slices.Equal(got, []int{2}) {
		t.Fatalf("with a hook that fails, the counts were %v", got)
	}
	writes := 0
	for _, call := range l.calls {
		if strings.HasPrefix(call, "put ") {
			writes++
		}
	}
	if writes > 21 {
		t.Errorf("%d writes in five minutes; one of the history and one of what is remembered each 30 seconds are enough",
			writes)
	}
}

// TestScalerPolicyReplaced: a policy that was destroyed and created again since the last look is treated as new, even
// if its document has the old one's revision.
func TestScalerPolicyReplaced(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	l.load = 1
	l.pass(s, 10*time.Second)
	policy := l.policy()
	policy.Min = 4
	l.drop(policy.Key())
	l.put(policy)
	if got := l.pass(s, time.Second); !slices.Equal(got, []int{4}) {
		t.Errorf("with min = 4, the counts are %v", got)
	}
}

// TestScalerPolicyCreatedAgain: a policy that is destroyed and created again begins anew, although its document looks
// as before and no controller saw it gone.
func TestScalerPolicyCreatedAgain(t *testing.T) {
	for name, next := range map[string]func(l *lab, s *scaler) *scaler{
		"the same controller": func(_ *lab, s *scaler) *scaler { return s },
		"a later one":         func(l *lab, _ *scaler) *scaler { return l.controller() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(p *domain.AutoscalingPolicy) {
				p.ScaleOut.Cooldown = new(domain.Duration(time.Hour))
			})
			policy := l.policy()
			create := func(id string) {
				l.drop(policy.Key())
				l.put(policy)
				edit(t, l.items, policy.Key(), func(doc *domain.AutoscalingPolicyDocument) { doc.ID = id })
			}
			create("first")
			s := l.controller()
			l.load = 1.5
			if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{3}) {
				t.Fatalf("the counts were %v", got)
			}
			l.load = 3
			create("second")
			l.pass(next(l, s), 10*time.Second)
			if got := l.count(); got != 6 {
				t.Errorf("the count is %d, as in the cooldown of the former policy, want 6", got)
			}
		})
	}
}

// TestEndOfPolicy: the change of count at a policy's end is in the history, whatever the controller saw of it.
func TestEndOfPolicy(t *testing.T) {
	for name, during := range map[string]func(l *lab, s *scaler) *scaler{
		"nothing":       func(_ *lab, s *scaler) *scaler { return s },
		"each step":     func(l *lab, s *scaler) *scaler { l.must(nil, l.look(s)); return s },
		"a later one":   func(l *lab, _ *scaler) *scaler { return l.controller() },
		"a death of it": func(l *lab, _ *scaler) *scaler { s := l.controller(); l.must(nil, l.look(s)); return s },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, plain)
			l.load = 1.4
			s := l.controller()
			l.pass(s, 10*time.Second)
			key := domain.PolicyKey("job", "worker")
			l.end(key)
			s = during(l, s)
			_, _, err := reconcile.Reconciler{Engine: l}.Scale(t.Context(),
				reconcile.Scaling{Group: "job", Role: "worker", From: 3, To: 1, At: l.now, Why: "the policy ends"})
			l.must(nil, err)
			s = during(l, s)
			if _, known := s.followed[key]; !known {
				t.Error("it is forgotten before it is gone")
			}
			l.drop(key)
			s = during(l, s)
			l.pass(s, time.Second)
			if len(s.followed) > 0 || len(s.board.statuses()) > 0 {
				t.Error("it is not forgotten")
			}
			s.keepAtEnd(t.Context())
			if diff := cmp.Diff([]string{"2 → 3 done", "3 → 1 done"}, l.changes()); diff != "" {
				t.Errorf("in the history (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScalerOfUnknownPolicies: a controller that can run none of the policies does not restart over and over.
func TestScalerOfUnknownPolicies(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Schedules = map[string]domain.ScalingSchedule{
			"office": {Start: "0 8 * * *", End: "0 18 * * *", TimeZone: "Mars/Olympus", Count: 2},
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	events := make(chan struct{})
	if err := l.controller().run(ctx, events); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it has ended: %v", err)
	}
	s := l.controller()
	policy := l.policy()
	l.must(nil, l.look(s))
	policy.Schedules = nil
	l.put(policy)
	l.load = 1.4
	if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{3}) {
		t.Errorf("once it can follow the policy, the counts are %v", got)
	}
}

// TestClockPutBack: a policy keeps deciding, even if its next decision is hours away after the clock was set back.
func TestClockPutBack(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	l.load = 1
	l.pass(s, 10*time.Second)
	l.now = l.now.Add(-3 * time.Hour)
	l.load = 1.4
	if got := l.pass(s, 10*time.Second); got[len(got)-1] != 3 {
		t.Errorf("three hours earlier, the counts are %v", got)
	}
}

// TestTwoScalers: a controller that another one has replaced without its noticing ends at its next write.
func TestTwoScalers(t *testing.T) {
	l := newLab(t, plain)
	l.load = 1
	first, second := l.controller(), l.controller()
	l.pass(first, 10*time.Second)
	err := l.look(second)
	if second.changed = true; err == nil {
		err = second.keep(t.Context(), l.now)
	}
	if !errors.Is(err, engine.ErrConflict) {
		t.Errorf("the second of two has the error %v, not a conflict", err)
	}
}

// TestScalerStandsBy: while another controller decides, this one waits.
func TestScalerStandsBy(t *testing.T) {
	l := newLab(t, plain)
	l.load = 3
	l.faults["Lock"] = &engine.LockedError{Lock: scalingLock}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- attend(ctx, l, slog.New(slog.DiscardHandler),
			func(ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger) error {
				return watchScaling(ctx, r, events, log, newBoard())
			})
	}()
	acctest.Eventually(t, "it to ask for the lock", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.faults["Lock"] == nil
	})
	cancel()
	if err := <-ended; err != nil || l.count() != 2 {
		t.Errorf("without the lock, the count is %d: %v", l.count(), err)
	}
}

// TestExternalAlgorithm: an external algorithm gets the measurements, and its count is used.
func TestExternalAlgorithm(t *testing.T) {
	answers := make(chan string, 1)
	answers <- `{"count": 5}`
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := <-answers
		answers <- answer
		_, _ = w.Write([]byte(answer))
	}))
	defer program.Close()
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
		p.Metrics = map[string]domain.ScalingMetric{"agent": {Algorithm: domain.ScalingAlgorithm{
			External: &domain.ExternalAlgorithm{ScalingHook: domain.ScalingHook{URL: program.URL}},
		}}}
	})
	s := l.controller()
	if got := l.pass(s, 10*time.Second); got[len(got)-1] != 5 {
		t.Errorf("the counts were %v", got)
	}
	<-answers
	answers <- `{"action": "down"}`
	if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{4, 3}) {
		t.Errorf("after the action down, the counts were %v", got)
	}
	<-answers
	answers <- `I don't know`
	if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{3}) {
		t.Errorf("without an answer, the counts were %v", got)
	}
}

// TestBeat: policies decide at the same times, however long that takes; many are spread over their
// interval, each at fixed times.
func TestBeat(t *testing.T) {
	policy := domain.AutoscalingPolicy{Group: "job", Role: "worker"}
	for _, after := range []time.Duration{0, time.Millisecond, 4999 * time.Millisecond} {
		if got := beat(policy, 3, noon.Add(after)); !got.Equal(noon.Add(5 * time.Second)) {
			t.Errorf("after %s, the next decision is %s after noon", after, got.Sub(noon))
		}
	}
	times := map[time.Time]int{}
	for i := range 1000 {
		policy.Role = domain.MemberName("job", "worker", i)
		first := beat(policy, 1000, noon)
		times[first]++
		if second := beat(policy, 1000, first); second.Sub(first) != 5*time.Second || !first.After(noon) ||
			first.After(noon.Add(5*time.Second)) {
			t.Fatalf("it decides at %s, and then at %s", first, second)
		}
	}
	for at, n := range times {
		if len(times) != 5 || n > 300 {
			t.Errorf("%d policies decide at %s, at one of %d times", n, at, len(times))
		}
	}
}
