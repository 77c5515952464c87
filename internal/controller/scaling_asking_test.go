package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// askedByQueue adds a second policy, for a role that does not exist, whose source does not answer
// until release is called.
func (l *lab) askedByQueue() (release func()) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-hangs
		_, _ = w.Write([]byte("3"))
	}))
	release = sync.OnceFunc(func() { close(hangs) })
	l.Cleanup(func() {
		release()
		server.Close()
	})
	l.put(domain.AutoscalingPolicy{Cluster: "lab", Group: "job", Role: "ps", Min: 0, Max: 6,
		Metrics: map[string]domain.ScalingMetric{"items": {
			Source:    domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: server.URL}}},
			Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1}},
		}}})
	return release
}

// nextAnswer takes the next answer, which has to be for this policy.
func (s *scaler) nextAnswer(t *testing.T, policy string) {
	t.Helper()
	a := <-s.answers
	if got := a.document.Spec.Key(); got != policy {
		t.Errorf("policy %s was answered, want %s", got, policy)
	}
	s.answered = append(s.answered, a)
}

// TestNobodyWaitsForAnother: policies with working sources keep deciding while another one's source hangs, and that one
// decides once it is answered.
func TestNobodyWaitsForAnother(t *testing.T) {
	l := newLab(t, plain)
	release := l.askedByQueue()
	s := l.controller()
	for _, want := range []int{4, 5, 6} {
		l.load = float64(want) / 2
		l.must(nil, s.look(t.Context(), l.now))
		s.nextAnswer(t, "job/worker")
		l.must(nil, s.decide(t.Context(), l.now))
		s.finish(<-s.outcomes, l.now)
		if got := l.count(); got != want || s.asking != 1 {
			t.Errorf("with another one that waits there are %d members, want %d; %d wait", got, want, s.asking)
		}
		if next := s.next(); next.Before(l.now) || next.After(l.now.Add(domain.DefaultScalingInterval)) {
			t.Errorf("the next decision is at %s", next)
		}
		l.now = l.now.Add(domain.DefaultScalingInterval)
	}
	release()
	s.nextAnswer(t, "job/ps")
	l.must(nil, s.decide(t.Context(), l.now))
	if next := s.next(); next.After(l.now) || s.asking != 0 {
		t.Errorf("it asks again at %s, %d wait", next, s.asking)
	}
}

// TestBoundsWaitForNobody: a count out of bounds is corrected no matter which metric hangs, except for the question
// whether members to be removed are busy.
func TestBoundsWaitForNobody(t *testing.T) {
	hangs := make(chan struct{})
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		if strings.HasPrefix(r.URL.Path, "/idle/") {
			_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[%d,"0"]}}`, noon.Unix())
			return
		}
		<-hangs
	}))
	defer server.Close()
	defer close(hangs)
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Metrics = map[string]domain.ScalingMetric{
			"items": {
				Source:    domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: server.URL}}},
				Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1}},
			},
			"learnt": {Algorithm: domain.ScalingAlgorithm{
				External: &domain.ExternalAlgorithm{ScalingHook: domain.ScalingHook{URL: server.URL}},
			}},
		}
		p.Guards.Busy = &domain.BusyGuard{GuardSource: domain.GuardSource{
			Prometheus: &domain.PrometheusSource{URL: server.URL + "/idle", Query: "applications"},
		}}
	})
	s := l.controller()
	policy := l.policy()
	for _, bounds := range [][2]int{{4, 6}, {1, 3}} {
		policy.Min, policy.Max = bounds[0], bounds[1]
		l.put(policy)
		l.must(nil, l.look(s))
		s.finish(<-s.outcomes, l.now)
		l.now = l.now.Add(domain.DefaultScalingInterval)
	}
	if got := l.count(); got != 3 {
		t.Errorf("the count is %d, want 3", got)
	}
	close(asked)
	for path := range asked {
		if !strings.HasPrefix(path, "/idle/") {
			t.Errorf("it has asked %s", path)
		}
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	if diff := cmp.Diff([]string{"2 → 4 done", "4 → 3 done"}, l.changes()); diff != "" {
		t.Errorf("in the history (-want +got):\n%s", diff)
	}
}

// TestAnswersToNobody: answers for a policy that was replaced or deleted decide nothing.
func TestAnswersToNobody(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"it was changed":   func(l *lab) { l.askedByQueue() },
		"it was destroyed": func(l *lab) { l.drop("job/ps") },
		"it was made anew": func(l *lab) { l.drop("job/ps"); l.askedByQueue() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, plain)
			release := l.askedByQueue()
			s := l.controller()
			l.must(nil, s.look(t.Context(), l.now))
			s.nextAnswer(t, "job/worker")
			l.must(nil, s.decide(t.Context(), l.now))
			change(l)
			l.now = l.now.Add(time.Second)
			l.must(nil, s.look(t.Context(), l.now))
			release()
			s.nextAnswer(t, "job/ps")
			l.must(nil, s.decide(t.Context(), l.now))
			for _, status := range s.board.statuses() {
				if status.Role == "ps" {
					t.Errorf("it has decided: %+v", status)
				}
			}
		})
	}
}

// unreadable is a lab whose policies can be read once. The third attempt is the last.
type unreadable struct {
	*lab

	reads []time.Time
	end   context.CancelFunc
}

func (u *unreadable) Snapshot() engine.Engine { return u }

func (u *unreadable) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	if kind != domain.PolicyKind {
		return u.lab.List(ctx, kind)
	}
	u.reads = append(u.reads, time.Now())
	switch len(u.reads) {
	case 1:
		return u.lab.List(ctx, kind)
	case 3:
		u.end()
	}
	return nil, errors.New("the engine is down")
}

// TestScalerRestsAfterFaults: unreadable policies are retried after a pause, even if one is due.
func TestScalerRestsAfterFaults(t *testing.T) {
	ctx, end := context.WithTimeout(t.Context(), patience.Limit)
	defer end()
	u := &unreadable{
		end: end, lab: newLab(t, func(p *domain.AutoscalingPolicy) { p.Interval = new(domain.Duration(time.Second)) }),
	}
	s, err := newScaler(t.Context(), reconcile.Reconciler{Engine: u, Controller: true}, slog.New(slog.DiscardHandler),
		newBoard())
	u.must(nil, err)
	if err := s.run(ctx, make(chan struct{})); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends by %v", err)
	}
	if len(u.reads) != 3 || u.reads[2].Sub(u.reads[1]) < 500*time.Millisecond {
		t.Errorf("the policies were read at %s", u.reads)
	}
}
