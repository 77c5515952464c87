package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestHooksOutliveDeath: whichever write to the store was a controller's last, whether or not it took effect, the next
// one continues: each change has one ID, both hooks are called, and each change is carried out once.
func TestHooksOutliveDeath(t *testing.T) {
	for name, test := range map[string]struct{ status, polled int }{
		"done at once": {http.StatusOK, 0}, "done later": {http.StatusAccepted, http.StatusSeeOther},
	} {
		t.Run(name, func(t *testing.T) { hooksOutliveDeath(t, test.status, test.polled) })
	}
}

func hooksOutliveDeath(t *testing.T, status, polled int) {
	t.Helper()
	for last, over := 2, false; !over; last++ {
		r := newRebalancer(t)
		r.answers(status, "")
		r.polled = polled
		l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting(), AfterAddition: r.lasting()})
		w := l.watcher()
		died := false
		state := l.dies(last/2, last%2 == 0)
		until := func(what string, holds func() bool) {
			acctest.Eventually(t, what, func() bool {
				w.step()
				if _, dead := state(); dead && !died {
					died = true
					w.kill()
					l.breaks(noFault)
					w = l.watcher()
					return false
				}
				return holds()
			})
		}
		l.load = 2
		until("more members, and the hook to be called",
			func() bool { return l.count() == 4 && len(r.ids()) == 1 && w.idle() })
		l.load = 0.1
		until("fewer members", func() bool { return l.count() == 1 && w.idle() })
		for range 3 {
			w.step() // what is cancelled by mistake is cancelled now
		}
		_, dead := state()
		over = !dead
		l.breaks(noFault)
		var changes []string
		for _, request := range r.unlike() {
			changes = append(changes, fmt.Sprintf("%s %d → %d", request.Hook, request.From, request.To))
		}
		if diff := cmp.Diff([]string{"after_addition 2 → 4", "before_removal 4 → 1"}, changes); diff != "" {
			t.Errorf("with the write %d/2, the hooks were called for (-want +got):\n%s", last, diff)
		}
		if history := w.historyText(); strings.Count(history, "2 → 4 done") != 1 ||
			strings.Count(history, "4 → 1 done") != 1 {
			t.Errorf("with the write %d/2, the history has other changes:\n%s", last, history)
		}
		if asked, _ := r.seen(); cancels(asked) {
			t.Errorf("with the write %d/2, a hook was cancelled: %q", last, asked)
		}
	}
}

// TestHookIsNotCancelledAfterRemoval: once the members are gone, the hook is not told that they stay, however often the
// end of its call can't be stored, and even if the policy ends then.
func TestHookIsNotCancelledAfterRemoval(t *testing.T) {
	key := domain.PolicyKey("job", "worker")
	for name, test := range map[string]struct {
		faults      int
		dies, drops bool
	}{
		"once":                                {1, false, false},
		"twice":                               {2, false, false},
		"thrice":                              {3, false, false},
		"until the policy ends":               {1, false, true},
		"until the controller dies":           {1, true, false},
		"until both, the policy having ended": {1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRebalancer(t)
			r.polled = http.StatusSeeOther
			l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
			left := test.faults
			l.breaks(func(call string, done bool) error {
				if done || left == 0 || l.count() > 1 ||
					!strings.HasPrefix(call, "put "+new(domain.HookCallsDocument).Kind().Name) {
					return nil
				}
				left--
				return errDead
			})
			l.load = 0.1
			w := l.watcher()
			w.until("the member to be gone", func() bool { return l.count() == 1 && !w.followed[key].changing })
			if test.drops {
				l.drop(key)
			}
			if test.dies {
				w.kill()
				w = l.watcher()
			}
			if test.drops {
				w.until("the policy to be forgotten", func() bool { return w.followed[key] == nil })
			} else {
				w.until("the call to be forgotten", w.idle)
			}
			for range 3 {
				w.step()
			}
			if asked, _ := r.seen(); cancels(asked) || left > 0 {
				t.Errorf("with %d faults left, it was asked %q", left, asked)
			}
		})
	}
}

// cancels reports whether a hook was asked to stop.
func cancels(asked []string) bool {
	return slices.ContainsFunc(asked, func(request string) bool {
		return strings.HasPrefix(request, http.MethodDelete)
	})
}

// unlike returns the bodies of its requests, one per change.
func (r *rebalancer) unlike() []hookRequest {
	_, received := r.seen()
	ids := map[string]bool{}
	return slices.DeleteFunc(received, func(t hookRequest) bool {
		again := ids[t.ID]
		ids[t.ID] = true
		return again
	})
}
