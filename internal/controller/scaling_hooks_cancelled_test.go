package controller

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestHookCalledOff: no member is removed once more members are wanted, or the policy was replaced or deleted. A hook
// with a URL for its work is asked to stop.
func TestHookCalledOff(t *testing.T) {
	key := domain.PolicyKey("job", "worker")
	for name, test := range map[string]struct {
		change func(l *lab)
		count  int
		says   string
	}{
		"more are wanted": {func(l *lab) { l.load = 2 }, 4, "2 → 1 held 4 members are wanted now, so none is removed"},
		"paused": {func(l *lab) {
			policy := l.policy()
			policy.Paused = domain.PauseIn
			l.put(policy)
		}, 2, "2 → 1 held the policy has changed; deciding again"},
		"only tried out": {func(l *lab) {
			policy := l.policy()
			policy.DryRun = true
			l.put(policy)
		}, 2, "2 → 1 held the policy has changed; deciding again"},
		"its members stay": {func(l *lab) {
			policy := l.policy()
			policy.Guards.Busy = &domain.BusyGuard{CPUPercent: new(1.0)}
			l.put(policy)
		}, 2, "2 → 1 held job-worker-1 stays"},
		"without the hook": {func(l *lab) {
			policy := l.policy()
			policy.Hooks.BeforeRemoval = nil
			l.put(policy)
		}, 1, "2 → 1 done"},
		"gone": {func(l *lab) { l.drop(key) }, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRebalancer(t)
			l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
			l.load = 0.1
			w := l.watcher()
			w.until("the hook to be at work", func() bool { asked, _ := r.seen(); return len(asked) > 2 })
			test.change(l)
			off := "DELETE /changes/" + r.ids()[0]
			w.until("the hook to be called off",
				func() bool { asked, _ := r.seen(); return slices.Contains(asked, off) && l.count() == test.count })
			if f := w.followed[key]; f != nil {
				w.until("the change to be recorded", func() bool { return !f.changing })
			}
			if history := w.historyText(); !strings.Contains(history, test.says) {
				t.Errorf("the history does not say %q:\n%s", test.says, history)
			}
			stored, err := engine.List[domain.HookCallsDocument](l.Context(), l)
			if l.must(nil, err); len(stored[key].Calls) > 0 {
				t.Errorf("there is stored %+v", stored)
			}
		})
	}
}

// TestCreatedAgainDuringHook: what a policy decided is void once it is destroyed and created again, although the next
// one looks the same.
func TestCreatedAgainDuringHook(t *testing.T) {
	l := newLab(t, func(*domain.AutoscalingPolicy) {})
	s, policy := l.controller(), l.policy()
	create := func(id string) domain.AutoscalingPolicyDocument {
		l.drop(policy.Key())
		l.put(policy)
		edit(t, l.items, policy.Key(), func(doc *domain.AutoscalingPolicyDocument) { doc.ID = id })
		document, err := s.reconciler.Policy(t.Context(), policy.Group, policy.Role)
		l.must(nil, err)
		return document
	}
	decided := create("first")
	l.must(nil, s.unchanged(t.Context(), decided))
	if next := create("second"); next.Revision != decided.Revision {
		t.Fatalf("the revision is %d, not %d as before", next.Revision, decided.Revision)
	}
	if err := s.unchanged(t.Context(), decided); !errors.Is(err, errPolicyChanged) {
		t.Errorf("after the policy was created again: %v", err)
	}
}

// TestLateHookCalledOff: a hook that was late may still be at work. It is asked to stop once more members are wanted,
// but not because of a guard, which may see its work.
func TestLateHookCalledOff(t *testing.T) {
	var needed atomic.Int64
	needed.Store(1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, needed.Load()) // the client may have gone
	}))
	defer server.Close()
	r := newRebalancer(t)
	l := hookLab(t, domain.ScalingHooks{BeforeRemoval: r.lasting()})
	policy := l.policy()
	policy.Hooks.BeforeRemoval.Timeout = new(domain.Duration(2 * time.Second))
	policy.Guards.AtLeast = &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: server.URL}}
	l.put(policy)
	l.load = 0.1
	w := l.watcher()
	w.until("the hook to be at work", func() bool { asked, _ := r.seen(); return len(asked) > 2 })
	w.until("the hook to be late", func() bool {
		return strings.Contains(w.historyText(), "not done within 2s") && !w.followed["job/worker"].changing
	})
	needed.Store(2)
	const guarded = "1 wanted, but guards.at_least requires 2"
	w.until("the guard to be heeded", func() bool { return strings.Contains(w.historyText(), guarded) })
	off := "DELETE /changes/" + r.ids()[0]
	if asked, _ := r.seen(); slices.Contains(asked, off) {
		t.Errorf("a guard undoes the hook's work:\n%s", w.historyText())
	}
	l.load = 2
	w.until("the hook to be called off",
		func() bool { asked, _ := r.seen(); return slices.Contains(asked, off) && l.count() == 4 })
}
