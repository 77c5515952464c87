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
	fault  error
}

func (h *halting) Traits() engine.Traits {
	traits := h.track.Traits()
	traits.Supports.Pause = true
	return traits
}

func (h *halting) Snapshot() engine.Engine { return h }

func (h *halting) Pause(_ context.Context, names []string) error {
	if h.fault != nil {
		return h.fault
	}
	h.halted = names
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

// Members that can't be paused for now keep their state, and hold up nothing else. They are paused once it works.
func TestPauseFails(t *testing.T) {
	l := &halting{track: newTrack(t, func(*domain.Sweep) {}), fault: errors.New("the Docker Engine is gone")}
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	paused, waiting := started(s)[0], "s-3"
	l.request(paused, domain.WishPause)
	l.request(waiting, domain.WishCancel)
	now := time.Now()
	next, err := s.look(t.Context(), now)
	l.must(nil, err)
	if state := l.stateOf(paused); state != domain.RunRunning {
		t.Errorf("the run that could not be paused is %s", state)
	}
	if state := l.stateOf(waiting); state != domain.RunCancelled {
		t.Errorf("the other run is %s", state)
	}
	left := l.requested()
	if !slices.Equal(left, []string{paused}) || next.IsZero() || next.After(now.Add(afterFault)) {
		t.Errorf("there are requests for %v, and the next look is at %s, now is %s", left, next, now)
	}

	l.fault = nil
	l.must(s.look(t.Context(), time.Now()))
	if state, left := l.stateOf(paused), l.requested(); state != domain.RunPaused || len(left) > 0 ||
		!slices.Equal(l.halted, []string{domain.RunName("lr", paused)}) {
		t.Errorf("the run is %s, %v are paused, and there are requests for %v", state, l.halted, left)
	}
}
