package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// halting is a track whose engine can pause members, or is supposed to.
type halting struct {
	*track
	halted []string
	// stuck is a member that can't be paused, with the reason why; also if it is one of several.
	stuck string
	fault error
}

func (h *halting) Traits() engine.Traits {
	traits := h.track.Traits()
	traits.Supports.Pause = true
	return traits
}

func (h *halting) Snapshot() engine.Engine { return h }

func (h *halting) Pause(_ context.Context, names []string) error {
	if slices.Contains(names, h.stuck) {
		return h.fault
	}
	h.halted = append(h.halted, names...)
	return nil
}

func (h *halting) Continue(context.Context, []string) error { return nil }

// request stores a request for a run of the sweep.
func (l *track) request(key string, want domain.RunWish) {
	l.Helper()
	found, err := reconcile.Reconciler{Engine: l}.SweepRuns(l.Context(), "lr")
	l.must(nil, err)
	request := domain.SweepRequest{Sweep: "lr", Run: key, ID: found.Document.ID, Want: want, By: "ada"}
	l.must(engine.Put(l.Context(), l, request))
}

// requested returns the runs with requests.
func (l *track) requested() (keys []string) {
	l.Helper()
	requests, err := engine.List[domain.SweepRequest](l.Context(), l)
	l.must(nil, err)
	for _, request := range requests {
		keys = append(keys, request.Run)
	}
	return keys
}

// stateOf returns the stored state of a run.
func (l *track) stateOf(key string) domain.RunState {
	l.Helper()
	found, err := reconcile.Reconciler{Engine: l}.SweepRuns(l.Context(), "lr")
	l.must(nil, err)
	return found.Runs[key].State
}

// started returns the keys of the active runs.
func started(s *sweeper) (keys []string) {
	for key, run := range s.sweeps["lr"].record.Runs() {
		if run.Active() {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// A run that was waiting when somebody asked to pause it may have started since. On an engine that can't pause members
// it goes on, and so does the sweep.
func TestPauseOfARunThatHasStarted(t *testing.T) {
	l := newTrack(t, func(*domain.Sweep) {})
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	key := started(s)[0]
	l.request(key, domain.WishPause)
	l.must(s.look(t.Context(), time.Now()))
	if state, left := l.stateOf(key), l.requested(); state != domain.RunRunning || len(left) > 0 {
		t.Errorf("the run is %s, and there are requests for %v", state, left)
	}
}

// A member that can't be paused now keeps its state, and holds up nothing else. It is paused once that works.
func TestPauseFails(t *testing.T) {
	l := &halting{track: newTrack(t, func(*domain.Sweep) {}), fault: errors.New("the Docker Engine is gone")}
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	runs := started(s)
	stuck, other, waiting := runs[0], runs[1], "s-3"
	l.stuck = domain.RunName("lr", stuck)
	l.request(stuck, domain.WishPause)
	l.request(other, domain.WishPause)
	l.request(waiting, domain.WishCancel)
	now := time.Now()
	next, err := s.look(t.Context(), now)
	l.must(nil, err)
	for key, want := range map[string]domain.RunState{
		stuck: domain.RunRunning, other: domain.RunPaused, waiting: domain.RunCancelled,
	} {
		if got := l.stateOf(key); got != want {
			t.Errorf("run %s is %s, want %s", key, got, want)
		}
	}
	left := l.requested()
	if !slices.Equal(left, []string{stuck}) || next.IsZero() || next.After(now.Add(afterFault)) {
		t.Errorf("there are requests for %v, and the next look is at %s, now is %s", left, next, now)
	}

	l.stuck, l.halted = "", nil
	l.must(s.look(t.Context(), time.Now()))
	if state, left := l.stateOf(stuck), l.requested(); state != domain.RunPaused || len(left) > 0 ||
		!slices.Equal(l.halted, []string{domain.RunName("lr", stuck)}) {
		t.Errorf("the run is %s, %v are paused, and there are requests for %v", state, l.halted, left)
	}
}
