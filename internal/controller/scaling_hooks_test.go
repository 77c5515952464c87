package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// rebalancer is a slow hook: it answers that it is at work until the test changes its answer.
type rebalancer struct {
	*httptest.Server

	mu sync.Mutex
	// asked are the requests so far, as method and path; received are their bodies.
	asked    []string
	received []hookRequest
	// status and body are its answer, and polled is its status at a change's own URL, if it is another one; nameless
	// means that it gives changes none.
	status, polled int
	body           string
	nameless       bool
	// forgetful means that it has forgotten all changes.
	forgetful bool
}

func newRebalancer(t *testing.T) *rebalancer {
	t.Helper()
	r := &rebalancer{status: http.StatusAccepted, body: `{"progress": 10}`}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, req.Method+" "+req.URL.Path)
		if req.Method == http.MethodPost {
			var request hookRequest
			if err := json.NewDecoder(req.Body).Decode(&request); err != nil ||
				req.Header.Get("Idempotency-Key") != `"`+request.ID+`"` {
				t.Errorf("it received %+v (%v) with the key %s", request, err, req.Header.Get("Idempotency-Key"))
			}
			r.received = append(r.received, request)
			if r.status == http.StatusAccepted && !r.nameless {
				w.Header().Set("Location", "/changes/"+request.ID)
			}
		}
		if r.forgetful && req.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		status := r.status
		if req.Method != http.MethodPost && r.polled != 0 {
			status = r.polled
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, r.body) // the client may have gone
	}))
	t.Cleanup(r.Close)
	return r
}

// answers sets the answer from now on.
func (r *rebalancer) answers(status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.body = status, body
}

// seen returns the requests and their bodies so far.
func (r *rebalancer) seen() ([]string, []hookRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked), slices.Clone(r.received)
}

// ids returns the distinct change IDs that it received.
func (r *rebalancer) ids() []string {
	_, received := r.seen()
	var ids []string
	for _, t := range received {
		if !slices.Contains(ids, t.ID) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// watcher is a controller that runs beside a test, and can be killed.
type watcher struct {
	*lab
	*scaler

	ctx  context.Context //nolint:containedctx // the controller's life
	kill context.CancelFunc
}

// watcher returns a controller that continues with what is stored.
func (l *lab) watcher() *watcher {
	l.Helper()
	ctx, kill := context.WithCancel(l.Context())
	s := l.controller()
	s.hookPace = hookPace{time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond}
	return &watcher{l, s, ctx, kill}
}

// step makes the policies decide once, and handles all results since.
func (w *watcher) step() {
	w.Helper()
	if err := lookAndDecide(w.ctx, w.scaler, w.now); err != nil && !errors.Is(err, errDead) {
		w.Fatal(err)
	}
	if f := w.followed["job/worker"]; f != nil && !f.changing &&
		documentOf[domain.GroupDocument](w.T, w.items, "job").Scaling {
		keepAll(w.ctx, w.reconciler, w.log, faults{}) // what a dead controller left unfinished
	}
	for heard := true; heard; {
		select {
		case o := <-w.outcomes:
			w.finish(o, w.now)
			w.startAdditionHook(w.ctx, o.policy)
		case t := <-w.hooked:
			w.finishAdditionHook(w.ctx, t, w.now)
		case r := <-w.resizes:
			w.finishResize(r)
		case <-time.After(time.Millisecond):
			heard = false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Second)
}

// errDead is the error of all calls of a dead controller.
var errDead = errors.New("the controller is dead")

// dies kills the controller at a write to the store, which may or may not take effect. state returns the number of
// writes, and whether it is dead.
func (l *lab) dies(last int, made bool) (state func() (writes int, dead bool)) {
	var mu sync.Mutex
	writes, dead := 0, false
	l.breaks(func(call string, done bool) error {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(call, "put ") {
			return nil
		}
		if !done {
			writes++
		}
		if dead = dead || writes > last || writes == last && done == made; dead {
			return errDead
		}
		return nil
	})
	return func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		return writes, dead
	}
}

// breaks sets which calls of the store fail.
func (i *items) breaks(fault func(call string, done bool) error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.fault = fault
}

// until lets time pass with the controller at work until holds returns true.
func (w *watcher) until(what string, holds func() bool) {
	w.Helper()
	acctest.Eventually(w, what, func() bool {
		if holds() {
			return true
		}
		w.step()
		return false
	})
}

// historyText returns the policy's history in words, after storing it.
func (w *watcher) historyText() string {
	w.Helper()
	w.must(nil, w.history.Flush(w.ctx, w.now))
	var lines []string
	for _, e := range w.entries(w.T, w.now, autoscale.Selection{}) {
		lines = append(lines, fmt.Sprintf("%d → %d %s %s; %s", e.From, e.To, e.Outcome, e.OutcomeWhy, e.Why()))
	}
	return strings.Join(lines, "\n")
}

// hookLab returns a lab with hooks, and a policy that removes members at once.
func hookLab(t *testing.T, hooks domain.ScalingHooks) *lab {
	t.Helper()
	return newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Hooks = hooks
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
	})
}

// lasting is a hook with a timeout of an hour.
func (r *rebalancer) lasting() *domain.ScalingHook {
	return &domain.ScalingHook{URL: r.URL + "/changed?token=hunter2", Timeout: new(domain.Duration(time.Hour))}
}

// TestHookBeforeRemoval: members stay while the hook is at work, which the history shows, and go once it is done, even
// if the controller dies meanwhile. The change has one ID, and the hook is called once if it gives a URL for polling.
func TestHookBeforeRemoval(t *testing.T) {
	for name, test := range map[string]struct {
		nameless bool
	}{"with an address of its own": {false}, "without": {true}} {
		t.Run(name, func(t *testing.T) {
			r := newRebalancer(t)
			r.nameless = test.nameless
			l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
			l.load = 0.1
			asks := func(more int) func() bool {
				before, _ := r.seen()
				return func() bool { now, _ := r.seen(); return len(now) >= len(before)+more }
			}
			for i := range 3 {
				w := l.watcher()
				w.until("the hook to be asked how it gets on", asks(4))
				r.answers(http.StatusAccepted, fmt.Sprintf(`{"progress": %d.5}`, 20+i))
				w.until("the progress in the history",
					func() bool { return strings.Contains(w.historyText(), fmt.Sprintf("2 → 1: %d.5 %%", 20+i)) })
				w.until("the history to say why nobody goes", func() bool {
					return strings.Contains(w.historyText(),
						"2 → 2 unchanged hook before_removal is running for change "+r.ids()[0])
				})
				w.kill()
			}
			w := l.watcher()
			w.until("the hook to be asked again", asks(2))
			if l.count() != 2 {
				t.Fatalf("the count is %d while the hook is at work", l.count())
			}
			r.answers(http.StatusOK, "")
			w.until("the member to be gone",
				func() bool { return l.count() == 1 && !w.followed["job/worker"].changing })
			_, received := r.seen()
			want := hookRequest{
				r.ids()[0], domain.BeforeRemoval, "lab", "job", "worker", 2, 1, []string{"job-worker-1"},
			}
			if diff := cmp.Diff(want, received[0]); diff != "" || len(r.ids()) != 1 ||
				(len(received) == 1) == test.nameless {
				t.Errorf("it received %d requests for the changes %q (-want +got):\n%s", len(received), r.ids(), diff)
			}
			if done := strings.Count(w.historyText(), "2 → 1 done"); done != 1 ||
				strings.Contains(w.historyText(), "hunter2") {
				t.Errorf("the history has the change %d times:\n%s", done, w.historyText())
			}
			if left := w.followed["job/worker"].calls.of(domain.BeforeRemoval); len(left) > 0 {
				t.Errorf("there is left %+v", left)
			}
		})
	}
}

// TestHookFails: if the hook fails, is late or can't be reached, members stay, the history says why, and the change
// keeps its ID as long as it is wanted.
func TestHookFails(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		limit  time.Duration
		says   string
	}{
		"it can't be done": {
			http.StatusConflict, `{"detail": "the last replica of\nseven partitions"}`, time.Hour,
			"HTTP 409 Conflict: the last replica of seven partitions",
		},
		"it fails": {http.StatusInternalServerError, `oops`, time.Hour, "HTTP 500 Internal Server Error"},
		"it is late": {
			http.StatusAccepted, `{"progress": "3 of 7 partitions"}`, 100 * time.Millisecond,
			"not done within 100ms; last progress: 3 of 7 partitions",
		},
		"it is not available": {
			http.StatusServiceUnavailable, `{"progress": 1}`, 100 * time.Millisecond,
			"HTTP 503 Service Unavailable; tried for 100ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRebalancer(t)
			l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
			policy := l.policy()
			policy.Hooks.BeforeRemoval.Timeout = new(domain.Duration(test.limit))
			l.put(policy)
			l.load = 0.1
			w := l.watcher()
			w.until("the hook to be at work", func() bool { return len(r.ids()) > 0 })
			r.answers(test.status, test.body)
			want := "2 → 1 held hook before_removal failed for job-worker-1, so no member is removed: "
			w.until("the failure in the history", func() bool {
				return strings.Contains(w.historyText(), want) && strings.Contains(w.historyText(), test.says)
			})
			r.answers(http.StatusOK, "")
			w.until("the member to be gone", func() bool { return l.count() == 1 })
			if len(r.ids()) != 1 {
				t.Errorf("the change had the IDs %q", r.ids())
			}
		})
	}
}

// TestHookEndsBetween: a policy that asks while its hook is at work, and decides after that has ended, starts no second
// change beside the first one, and records none.
func TestHookEndsBetween(t *testing.T) {
	for name, test := range map[string]struct {
		load   float64
		unlike string
		says   string
	}{
		"as many are wanted": {0.1, "2 → 1 ", "2 → 2 unchanged"},
		"more are wanted":    {2, "2 → 4 done", "2 → 4 held the last change is still in progress"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRebalancer(t)
			l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
			l.load = 0.1
			w := l.watcher()
			f := func() *followed { return w.followed["job/worker"] }
			w.until("the hook to be at work", func() bool { return len(r.ids()) > 0 && f().removing.Load() })
			l.load = test.load
			l.now = l.now.Add(time.Minute)
			l.must(nil, w.scaler.look(w.ctx, l.now))
			if w.asking == 0 {
				t.Fatal("nothing is asked while the hook is at work")
			}
			f().removing.Store(false)
			l.must(nil, w.decide(w.ctx, l.now))
			for len(w.answered) < w.asking {
				w.answered = append(w.answered, <-w.answers)
			}
			l.must(nil, w.decide(w.ctx, l.now))
			if w.changing != 1 {
				t.Errorf("%d changes are under way", w.changing)
			}
			history := w.historyText()
			if strings.Contains(history, test.unlike) || !strings.Contains(history, test.says) {
				t.Errorf("the history says %q, or not %q:\n%s", test.unlike, test.says, history)
			}
		})
	}
}

// TestHookAskedBefore: what a policy has asked before a removal was carried out decides nothing. The hook is not called
// about members that are gone, and the policy asks again at once.
func TestHookAskedBefore(t *testing.T) {
	r := newRebalancer(t)
	l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
	l.load = 0.1
	w := l.watcher()
	f := func() *followed { return w.followed["job/worker"] }
	w.until("the hook to be at work", func() bool { return len(r.ids()) > 0 && f().removing.Load() })
	l.now = l.now.Add(time.Minute)
	l.must(nil, w.scaler.look(w.ctx, l.now))
	w.answered = append(w.answered, <-w.answers)
	r.answers(http.StatusOK, "")
	w.finish(<-w.outcomes, l.now)
	l.must(nil, w.decide(w.ctx, l.now))
	if w.changing > 0 || !f().isDue(l.now) {
		t.Errorf("with %d members, %d changes are under way; it asks again at %s", l.count(), w.changing, f().next)
	}
}

// TestHookForgets: a restarted hook that no longer knows a change is called about it again.
func TestHookForgets(t *testing.T) {
	r := newRebalancer(t)
	l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
	l.load = 0.1
	w := l.watcher()
	w.until("the hook to be at work", func() bool { return len(r.ids()) > 0 })
	r.mu.Lock()
	r.forgetful = true
	r.mu.Unlock()
	w.until("it to be called again", func() bool { _, received := r.seen(); return len(received) > 1 })
	if len(r.ids()) != 1 || l.count() != 2 {
		t.Errorf("the change had the IDs %q, and the count is %d", r.ids(), l.count())
	}
}

// TestHookCallsConflict: a controller that can't store hook calls any more, as the answer to a write was lost, ends,
// and the next one continues.
func TestHookCallsConflict(t *testing.T) {
	r := newRebalancer(t)
	l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
	lost := false
	l.breaks(func(call string, done bool) error {
		if lost || !done || !strings.HasPrefix(call, "put "+new(domain.HookCallsDocument).Kind().Name) {
			return nil
		}
		lost = true
		return errDead
	})
	l.load = 0.1
	w := l.watcher()
	acctest.Eventually(t, "the controller to end", func() bool {
		w.now = w.now.Add(time.Second)
		if err := lookAndDecide(w.ctx, w.scaler, w.now); err != nil {
			return errors.Is(err, engine.ErrConflict)
		}
		if w.changing > 0 {
			w.finish(<-w.outcomes, w.now)
		}
		return false
	})
	w.kill()
	r.answers(http.StatusOK, "")
	w = l.watcher()
	w.until("the member to be gone", func() bool { return l.count() == 1 && w.idle() })
	if len(r.ids()) != 1 {
		t.Errorf("the change had the IDs %q", r.ids())
	}
}

// idle reports whether no change of the policy and no hook call is in progress or pending.
func (w *watcher) idle() bool {
	f := w.followed["job/worker"]
	return f != nil && !f.changing && f.stopAdditionHook == nil &&
		len(f.calls.of(domain.AfterAddition))+len(f.calls.of(domain.BeforeRemoval)) == 0
}
