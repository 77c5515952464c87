package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// finishes is the hook of a sweep.
type finishes struct {
	*httptest.Server
	mu sync.Mutex
	// calls and bodies are the calls that it got, and failing makes it refuse them instead.
	calls   []string
	bodies  []reportBody
	failing bool
	// gate holds up the answers until it is closed; nil if they aren't held up.
	gate chan struct{}
}

func newFinishes(t *testing.T) *finishes {
	t.Helper()
	h := &finishes{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body reportBody
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("a call can't be read: %v", err)
		}
		gate, refused := h.note(body)
		if gate != nil {
			<-gate
		}
		if refused {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// declared returns it as a sweep declares it. On a machine that stalls, a call may take longer than the default
// timeout, and would then be repeated.
func (h *finishes) declared() *domain.ScalingHook {
	return &domain.ScalingHook{URL: h.URL, Timeout: new(domain.Duration(domain.MaxHookTimeout))}
}

// note records a call, unless the hook refuses it, and returns the gate.
func (h *finishes) note(body reportBody) (gate chan struct{}, refused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.failing {
		h.calls = append(h.calls, fmt.Sprintf("%s %s %d", body.Run, body.State, body.Attempt))
		h.bodies = append(h.bodies, body)
	}
	return h.gate, h.failing
}

// setFailing makes it refuse calls, or no longer.
func (h *finishes) setFailing(failing bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failing = failing
}

// hold holds up its answers until the returned function is called, or the test ends.
func (h *finishes) hold(t *testing.T) (release func()) {
	t.Helper()
	h.gate = make(chan struct{})
	release = sync.OnceFunc(func() { close(h.gate) })
	t.Cleanup(release)
	return release
}

// awaitCalls waits until it has got this many calls.
func (h *finishes) awaitCalls(t *testing.T, count int) {
	t.Helper()
	acctest.Eventually(t, fmt.Sprintf("%d calls of the hook", count), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.calls) >= count
	})
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
	acctest.Eventually(l.T, "all runs to end, and all ends to be reported", func() bool {
		l.must(s.look(l.Context(), time.Now()))
		if l.summary().Ended() && l.unreported() == 0 {
			return true
		}
		l.finish()
		return false
	})
}

// deliver lets a controller look until all ends are reported.
func (l *track) deliver(s *sweeper) {
	l.Helper()
	acctest.Eventually(l.T, "all ends to be reported", func() bool {
		l.must(s.look(l.Context(), time.Now()))
		return l.unreported() == 0
	})
}

// unreported returns the number of stored ends that are yet to be reported.
func (l *track) unreported() (count int) {
	l.Helper()
	found, err := reconcile.Reconciler{Engine: l}.SweepRuns(l.Context(), "lr")
	l.must(nil, err)
	for _, run := range found.Runs {
		count += len(run.Reports)
	}
	return count
}

// cancel makes a controller cancel runs.
func (l *track) cancel(s *sweeper, keys ...string) {
	l.Helper()
	for _, key := range keys {
		l.request(key, domain.WishCancel)
	}
	l.must(s.look(l.Context(), time.Now()))
}

// awaitCalled waits until all hook calls that a look has begun have ended.
func awaitCalled(t *testing.T, s *sweeper) {
	t.Helper()
	acctest.Eventually(t, "the hook to answer", func() bool {
		s.reports.mu.Lock()
		defer s.reports.mu.Unlock()
		return len(s.reports.calling) == 0
	})
}

// A hook is called once for each run, when it has ended: not for an attempt that another one follows, but also for a
// run that is cancelled before it starts. The controller's successor calls it for none of them again.
func TestHookIsCalledOncePerRun(t *testing.T) {
	hook := newFinishes(t)
	l := newTrack(t, func(s *domain.Sweep) { s.OnFinish = hook.declared() })
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	if first := started(s); !slices.Equal(first, []string{"f-0", "f-1", "f-2"}) {
		t.Fatalf("%q were started first", first)
	}
	l.cancel(s, "f-0", "s-3")
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
		s.OnFinish, s.Rerun = hook.declared(), domain.RerunFailed
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

// A run that is cancelled while it is paused has ended, whether it had started or not; a paused one hasn't.
func TestHookIsCalledForPausedRuns(t *testing.T) {
	hook := newFinishes(t)
	l := &halting{track: newTrack(t, func(s *domain.Sweep) { s.OnFinish = hook.declared() })}
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.request("f-0", domain.WishPause)
	l.request("s-3", domain.WishPause)
	l.must(s.look(t.Context(), time.Now()))
	for _, key := range []string{"f-0", "s-3"} {
		if state := l.stateOf(key); state != domain.RunPaused {
			t.Fatalf("run %s is %s", key, state)
		}
	}
	if left := l.unreported(); left > 0 {
		t.Errorf("%d ends of paused runs are to be reported", left)
	}
	l.cancel(s, "f-0", "s-3")
	l.deliver(s)
	hook.expect(t, "f-0 cancelled 1", "s-3 cancelled 0")
}

// Each end of a run is reported, also of one that was cancelled again before it started, and has its own time.
func TestHookIsCalledForEachEnd(t *testing.T) {
	hook := newFinishes(t)
	release := hook.hold(t)
	l := newTrack(t, func(s *domain.Sweep) { s.OnFinish = hook.declared() })
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.cancel(s, "s-3")
	l.request("s-3", domain.WishResume)
	l.must(s.look(t.Context(), time.Now()))
	l.cancel(s, "s-3")
	release()
	l.deliver(s)
	hook.expect(t, "s-3 cancelled 0", "s-3 cancelled 0")
	if ends := hook.bodies; len(ends) == 2 && ends[0].EndedAt.Equal(ends[1].EndedAt) {
		t.Errorf("both ended at %s", ends[0].EndedAt)
	}
}

// If many runs end at once, a hook call follows the one before, without a look of the controller in between.
func TestHookCallsOfManyRuns(t *testing.T) {
	const runs = 5 * reportsAtOnce
	hook := newFinishes(t)
	l := newTrack(t, func(s *domain.Sweep) {
		s.OnFinish, s.Runs = hook.declared(), map[string]map[string]string{}
		for i := range runs {
			s.Runs[fmt.Sprint("s-", i)] = nil
		}
	})
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.cancel(s, slices.Collect(maps.Keys(s.sweeps["lr"].spec.Runs))...)
	hook.awaitCalls(t, runs)
	l.deliver(s)
	if calls := len(hook.bodies); calls != runs {
		t.Errorf("the hook was called %d times for %d runs", calls, runs)
	}
}

// cut is a track whose event streams end when a test says so.
type cut struct {
	*track
	streams chan chan struct{}
}

func (c *cut) Snapshot() engine.Engine { return c }

func (c *cut) Watch(ctx context.Context) (<-chan struct{}, error) {
	events := make(chan struct{}, 1)
	select {
	case c.streams <- events:
	case <-ctx.Done():
	}
	return events, ctx.Err()
}

// A hook that is at work while the event stream ends is not called again.
func TestHookCallOutlivesEvents(t *testing.T) {
	hook := newFinishes(t)
	release := hook.hold(t)
	l := &cut{
		track:   newTrack(t, func(s *domain.Sweep) { s.OnFinish = hook.declared() }),
		streams: make(chan chan struct{}),
	}
	log, done := slog.New(slog.DiscardHandler), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		again(ctx, l, log, followSweeps(ctx, log))
	}()
	defer func() {
		stop()
		<-done
	}()
	first := <-l.streams
	l.request("s-3", domain.WishCancel)
	first <- struct{}{}
	hook.awaitCalls(t, 1)
	close(first)
	second := <-l.streams
	l.request("s-2", domain.WishCancel)
	second <- struct{}{}
	hook.awaitCalls(t, 2) // the next sweeper has read what is to be reported
	release()
	acctest.Eventually(t, "all ends to be reported", func() bool { return l.unreported() == 0 })
	hook.expect(t, "s-2 cancelled 0", "s-3 cancelled 0")
}

// A hook is not called again if storing that it was called fails, whether or not that took effect.
func TestHookCallThatCannotBeStored(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %t", done), func(t *testing.T) {
			hook := newFinishes(t)
			l := newTrack(t, func(s *domain.Sweep) { s.OnFinish = hook.declared() })
			s := l.sweeper(l)
			l.must(s.look(t.Context(), time.Now()))
			l.cancel(s, "s-3")
			awaitCalled(t, s)
			errGone := errors.New("the store is gone")
			l.fault = func(call string, after bool) error {
				if after == done && strings.HasPrefix(call, "put "+domain.SweepRecordKind.Name+"/") {
					return errGone
				}
				return nil
			}
			if _, err := s.look(t.Context(), time.Now()); !errors.Is(err, errGone) {
				t.Fatalf("it says %v", err)
			}
			l.fault = noFault
			s = newSweeper(s.reconciler, s.log, s.reports)
			l.deliver(s)
			l.must(s.look(t.Context(), time.Now()))
			hook.expect(t, "s-3 cancelled 0")
		})
	}
}

// What a controller could not report, its successor does.
func TestSuccessorCallsHook(t *testing.T) {
	hook := newFinishes(t)
	hook.setFailing(true)
	l := newTrack(t, func(s *domain.Sweep) { s.OnFinish = hook.declared() })
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.cancel(s, "s-3")
	awaitCalled(t, s)
	l.must(s.look(t.Context(), time.Now()))
	if left := l.unreported(); left != 1 {
		t.Fatalf("%d ends are to be reported", left)
	}
	hook.setFailing(false)
	l.deliver(l.sweeper(l))
	hook.expect(t, "s-3 cancelled 0")
}

// Another hook is called at once: neither a failed call of the former one, nor one that fails later, delays it.
func TestCorrectedHookIsCalledAtOnce(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("the former one fails later %t", late), func(t *testing.T) {
			former, hook, begun := newFinishes(t), newFinishes(t), time.Now()
			former.setFailing(true)
			release := former.hold(t)
			var spec domain.Sweep
			l := newTrack(t, func(s *domain.Sweep) {
				s.OnFinish = former.declared()
				spec = *s
			})
			s := l.sweeper(l)
			l.must(s.look(t.Context(), begun))
			l.request("s-3", domain.WishCancel)
			l.must(s.look(t.Context(), begun))
			if !late {
				release()
				awaitCalled(t, s)
			}
			spec.OnFinish = hook.declared()
			_, err := reconcile.Reconciler{Engine: l}.PutSweep(t.Context(), spec, false)
			l.must(nil, err)
			l.must(s.look(t.Context(), begun))
			release()
			awaitCalled(t, s)
			l.must(s.look(t.Context(), begun))
			awaitCalled(t, s)
			hook.expect(t, "s-3 cancelled 0")
		})
	}
}

// Only the server of a hook's URL, whose path is the secret of a chat's webhook, is in a log.
func TestFailedHookKeepsItsURL(t *testing.T) {
	for name, test := range map[string]struct {
		path   string
		answer http.HandlerFunc
	}{
		"it fails": {"/services/T0/hunter2", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"a path with escapes": {"/services/%54%30/a+b%2Fhunter2/", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
		}},
		"it has moved": {"/services/T0/hunter2", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example"+r.URL.Path, http.StatusFound)
		}},
		"without the last slash": {"/services/T0/hunter2/", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.TrimSuffix(r.URL.Path, "/"), http.StatusPermanentRedirect)
		}},
		"its token has moved": {"/services/T0/hunter2", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/v2/hunter2/messages?key=hunter2", http.StatusFound)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hook := httptest.NewServer(test.answer)
			defer hook.Close()
			l := newTrack(t, func(s *domain.Sweep) {
				s.OnFinish = &domain.ScalingHook{
					URL: hook.URL + test.path, Timeout: new(domain.Duration(domain.MaxHookTimeout)),
				}
			})
			var text bytes.Buffer
			log := slog.New(slog.NewTextHandler(&text, nil))
			s := newSweeper(reconcile.Reconciler{Engine: l, Controller: true}, log, newReporter(t.Context(), log))
			l.must(s.look(t.Context(), time.Now()))
			l.cancel(s, "s-3")
			awaitCalled(t, s)
			said := text.String()
			if !strings.Contains(said, hook.URL+": HTTP ") || strings.Contains(said, "hunter2") {
				t.Errorf("the log is %s", said)
			}
		})
	}
}
