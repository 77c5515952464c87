package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// finishes is the hook of a sweep.
type finishes struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
}

func newFinishes(t *testing.T) *finishes {
	t.Helper()
	h := &finishes{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body reportBody
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("a call can't be read: %v", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, fmt.Sprintf("%s %s %d", body.Run, body.State, body.Attempt))
	}))
	t.Cleanup(h.Close)
	return h
}

// expect fails unless exactly these calls were made, in any order.
func (h *finishes) expect(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.calls)
	slices.Sort(want)
	if !slices.Equal(h.calls, want) {
		t.Errorf("the hook was called for\n%q, want\n%q", h.calls, want)
	}
}

// finishAll lets a controller look, and members end, until all runs have ended, and all ends are reported.
func (l *track) finishAll(s *sweeper) {
	l.Helper()
	for end := time.Now().Add(patience.Limit); ; l.finish() {
		l.must(s.look(l.Context(), time.Now()))
		found, err := reconcile.Reconciler{Engine: l}.SweepRuns(l.Context(), "lr")
		l.must(nil, err)
		done := sweep.Summarise(found.Document, found.Spec, found.Runs).Ended()
		for _, run := range found.Runs {
			done = done && len(run.Reports) == 0
		}
		if done {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("the runs are %+v", found.Runs)
		}
	}
}

// A hook is called once for each run, when it has ended: not for an attempt that another one follows, but also for a
// run that is cancelled before it starts. The controller's successor calls it for none of them again.
func TestHookIsCalledOncePerRun(t *testing.T) {
	hook := newFinishes(t)
	l := newTrack(t, func(s *domain.Sweep) { s.OnFinish = &domain.ScalingHook{URL: hook.URL} })
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	if first := started(s); !slices.Equal(first, []string{"f-0", "f-1", "f-2"}) {
		t.Fatalf("%q were started first", first)
	}
	l.request("f-0", domain.WishCancel)
	l.request("s-3", domain.WishCancel)
	l.must(s.look(t.Context(), time.Now()))
	l.finishAll(s)
	s = l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.finishAll(s)
	hook.expect(
		t, "f-0 cancelled 1", "f-1 failed 2", "f-2 failed 2", "f-3 failed 2", "o-0 succeeded 2", "o-1 succeeded 2",
		"o-2 succeeded 2", "o-3 succeeded 2", "s-0 succeeded 1", "s-1 succeeded 1", "s-2 succeeded 1",
		"s-3 cancelled 0",
	)
}

// A run that fails for good, but starts over since the sweep has changed meanwhile, has not ended yet.
func TestHookIsNotCalledForRunsThatStartOver(t *testing.T) {
	hook := newFinishes(t)
	var spec domain.Sweep
	l := newTrack(t, func(s *domain.Sweep) {
		s.OnFinish, s.Rerun = &domain.ScalingHook{URL: hook.URL}, domain.RerunFailed
		s.Runs, s.Retry.MaxAttempts = map[string]map[string]string{"f-0": nil}, new(1)
		spec = *s
	})
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	spec.Triggers = map[string]string{"data": "v2"}
	_, err := reconcile.Reconciler{Engine: l}.PutSweep(t.Context(), spec, false)
	l.must(nil, err)
	l.finish()
	l.finishAll(s)
	if began := l.begun[domain.RunName("lr", "f-0")]; began != 2 {
		t.Errorf("it was started %d times, want it to start over", began)
	}
	hook.expect(t, "f-0 failed 1")
}

// The path of a hook's URL, which is the secret of a chat's webhook, is in no log.
func TestFailedHookKeepsItsURL(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"it fails": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"it has moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example"+r.URL.Path, http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			hook := httptest.NewServer(answer)
			defer hook.Close()
			l := newTrack(t, func(s *domain.Sweep) {
				s.OnFinish = &domain.ScalingHook{URL: hook.URL + "/services/T0/hunter2"}
			})
			var log bytes.Buffer
			s := newSweeper(reconcile.Reconciler{Engine: l, Controller: true}, slog.New(slog.NewTextHandler(&log, nil)))
			l.must(s.look(t.Context(), time.Now()))
			l.request("s-3", domain.WishCancel)
			l.must(s.look(t.Context(), time.Now()))
			select {
			case <-s.reports.woken:
			case <-time.After(patience.Limit):
				t.Fatal("the hook was not called")
			}
			if said := log.String(); !strings.Contains(said, "HTTP ") || strings.Contains(said, "hunter2") {
				t.Errorf("the log is %s", said)
			}
		})
	}
}
