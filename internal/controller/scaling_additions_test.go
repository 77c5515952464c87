package controller

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestHookAfterAddition: the hook is called about members once they run. While it is at work none is removed, and more
// may be added, about which it is called next. If it fails, the members stay, and the history says so.
func TestHookAfterAddition(t *testing.T) {
	r := newRebalancer(t)
	l := hookLab(t, domain.ScalingHooks{AfterAddition: r.lasting()})
	w := l.watcher()
	l.load = 1.5
	w.until("the hook to be at work", func() bool { asked, _ := r.seen(); return len(asked) > 3 })
	l.load = 2
	w.until("more members", func() bool { return l.count() == 4 })
	l.load = 0.1
	w.until("the history to say why nobody goes",
		func() bool { return strings.Contains(w.historyText(), "1 wanted, but a hook is at work") })
	w.kill()
	w = l.watcher()
	_, received := r.seen()
	w.until("the hook to be asked by the next controller", func() bool { asked, _ := r.seen(); return len(asked) > 8 })
	if _, now := r.seen(); len(now) != len(received) || len(received) != 1 || l.count() != 4 {
		t.Errorf("it received %+v; the count is %d", now, l.count())
	}
	l.load = 2
	r.answers(http.StatusInternalServerError, `{"title": "no such broker"}`)
	w.until("the hook to be called again", func() bool { _, received := r.seen(); return len(received) == 2 })
	l.load = 0.1
	r.answers(http.StatusOK, "")
	w.until("the members to go", func() bool { return l.count() == 1 && w.idle() })
	var members []string
	for _, request := range r.unlike() {
		members = append(members, strings.Join(request.Members, " "))
	}
	if diff := cmp.Diff([]string{"job-worker-2", "job-worker-3"}, members); diff != "" {
		t.Errorf("it was called for members (-want +got):\n%s", diff)
	}
	if history := w.historyText(); !strings.Contains(
		history, "failed hook after_addition failed for job-worker-2, which stay: "+r.URL,
	) || !strings.Contains(history, "HTTP 500 Internal Server Error: no such broker") {
		t.Errorf("the history lacks the failure:\n%s", history)
	}
}

// TestHookOfThoseWhoRun: the after_addition hook waits for the members without blocking others. It is not called about
// members that were removed before they ran.
func TestHookOfThoseWhoRun(t *testing.T) {
	r := newRebalancer(t)
	r.answers(http.StatusOK, "")
	l := hookLab(t, domain.ScalingHooks{AfterAddition: r.lasting()})
	l.starting = map[string]bool{"job-worker-2": true, "job-worker-3": true}
	w := l.watcher()
	l.load = 2
	w.until("more members", func() bool { return l.count() == 4 && !w.followed["job/worker"].changing })
	l.load = 1.5
	w.until("fewer members", func() bool { return l.count() == 3 && !w.followed["job/worker"].changing })
	for range 5 {
		w.step()
	}
	if _, received := r.seen(); len(received) > 0 {
		t.Errorf("it was called for members that don't run: %+v", received)
	}
	l.runs("job-worker-2")
	w.until("the hook to be called", w.idle)
	if _, received := r.seen(); len(received) != 1 || !slices.Equal(received[0].Members, []string{"job-worker-2"}) ||
		received[0].From != 2 || received[0].To != 3 {
		t.Errorf("it received %+v", received)
	}
}

// TestHookOfThoseWithoutNames: for members that the engine schedules, the hook gets their number only.
func TestHookOfThoseWithoutNames(t *testing.T) {
	r := newRebalancer(t)
	r.answers(http.StatusOK, "")
	l := hookLab(t, domain.ScalingHooks{AfterAddition: r.lasting()})
	l.spark()
	l.schedules = true
	w := l.watcher()
	l.load = 2
	w.until("the hook to be called", func() bool { _, received := r.seen(); return len(received) > 0 && w.idle() })
	if _, received := r.seen(); len(received) != 1 || received[0].Members != nil || received[0].From != 2 ||
		received[0].To != l.count() {
		t.Errorf("it received %+v, and the count is %d", received, l.count())
	}
}

// TestHookDoneOnce: a hook that is done is not called again while the store can't delete its call.
func TestHookDoneOnce(t *testing.T) {
	r := newRebalancer(t)
	r.answers(http.StatusOK, "")
	l := hookLab(t, domain.ScalingHooks{AfterAddition: r.lasting()})
	calls := "put " + new(domain.HookCallsDocument).Kind().Name
	var refused atomic.Int64
	l.breaks(func(call string, _ bool) error {
		if _, received := r.seen(); len(received) == 0 || refused.Load() == 3 || !strings.HasPrefix(call, calls) {
			return nil
		}
		refused.Add(1)
		return errDead
	})
	w := l.watcher()
	l.load = 2
	w.until("the call to be deleted", func() bool { return refused.Load() == 3 && w.idle() })
	if _, received := r.seen(); len(received) != 1 {
		t.Errorf("it was called %d times", len(received))
	}
	want := "hook after_addition has finished for change " + r.ids()[0]
	if history := w.historyText(); !strings.Contains(history, want) {
		t.Errorf("the history lacks its end:\n%s", history)
	}
}
