package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestScalerRestarts: a controller continues with the stored state as the one before it would have. A restart changes
// nothing by itself, and forgets no cooldown or window.
func TestScalerRestarts(t *testing.T) {
	slow := func(p *domain.AutoscalingPolicy) {
		p.ScaleOut.Cooldown = new(domain.Duration(90 * time.Second))
	}
	l := newLab(t, slow)
	s := l.controller()
	l.load = 1.5
	if got := l.pass(s, 10*time.Second); !slices.Equal(got, []int{3}) {
		t.Fatalf("the counts were %v", got)
	}
	l.load = 3
	for range 7 {
		s = l.controller()
		if got := l.pass(s, 11*time.Second); !slices.Equal(got, []int{3}) {
			t.Fatalf("in the cooldown, with controllers that die, the counts were %v", got)
		}
	}
	if got := l.pass(l.controller(), 30*time.Second); !slices.Equal(got, []int{3, 6}) {
		t.Errorf("after the cooldown, the counts were %v", got)
	}
	l.load = 0.1
	l.pass(l.controller(), 30*time.Second)
	l.now = l.now.Add(time.Hour) // without any controller
	if got := l.pass(l.controller(), 50*time.Second); !slices.Equal(got, []int{6}) {
		t.Errorf("after an hour of which nothing is known, the counts were %v", got)
	}
}

// TestScalerDies: a change by a controller that died just then is known to the next one, and in the history once.
func TestScalerDies(t *testing.T) {
	slow := func(p *domain.AutoscalingPolicy) {
		p.ScaleOut.Cooldown = new(domain.Duration(time.Minute))
	}
	for name, stores := range map[string]func(s *scaler, o outcome){
		"before it is noted": func(*scaler, outcome) {},
		"once it is in the history alone": func(s *scaler, o outcome) {
			s.finish(o, o.entry.Until)
			if err := s.history.Flush(t.Context(), o.entry.Until); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, slow)
			s := l.controller()
			l.load = 1
			l.pass(s, 10*time.Second)
			l.must(nil, s.memory.store(t.Context(), s.followed, l.now))
			l.load = 2
			l.must(nil, l.look(s))
			stores(s, <-s.outcomes)
			l.load = 3
			l.now = l.now.Add(time.Second)
			if got := l.pass(l.controller(), 50*time.Second); !slices.Equal(got, []int{4}) {
				t.Errorf("in the cooldown of a change that was not noted, the counts were %v", got)
			}
			if got := l.changes(); len(got) != 1 || !strings.HasPrefix(got[0], "2 → 4 done") {
				t.Errorf("in the history: %q", got)
			}
		})
	}
}

// TestScalerDiesAtOnce: even a change by a policy's very first decision is known to the next controller.
func TestScalerDiesAtOnce(t *testing.T) {
	l := newLab(t, plain)
	s := l.controller()
	l.load = 2
	l.must(nil, l.look(s))
	<-s.outcomes // which it does not record
	l.pass(l.controller(), time.Second)
	if got := l.changes(); len(got) != 1 || !strings.HasPrefix(got[0], "2 → 4 done") {
		t.Errorf("in the history: %q", got)
	}
}

// TestScalerNotesFirst: the outcome of a change is stored before the next one begins, so that no crash loses it.
func TestScalerNotesFirst(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) { p.ScaleOut.MaxStep = 1 })
	s := l.controller()
	l.load = 3
	for range 2 {
		l.must(nil, l.look(s))
		s.finish(<-s.outcomes, l.now)
		l.now = l.now.Add(5 * time.Second)
	}
	stored := false
	l.fault = func(call string, _ bool) error {
		if strings.HasPrefix(call, putChunk) && !stored {
			stored = true
			if s.followed["job/worker"].changing {
				t.Error("another change was begun before the last one was stored")
			}
		}
		return nil
	}
	l.must(nil, l.look(s))
	if s.finish(<-s.outcomes, l.now); !stored {
		t.Error("the last change was not stored")
	}
}

// TestScalerOutlastsFaults: a stored change counts as done, whatever the call returned and whatever happens
// to the members at first.
func TestScalerOutlastsFaults(t *testing.T) {
	down := errors.New("the engine is down")
	for call, want := range map[string][]string{
		"Start":     {"2 → 4 done the engine is down; the controller is trying again"},
		"Put group": {"2 → 4 failed the engine is down", "2 → 4 done carried out, but not recorded at the time"},
	} {
		t.Run(call, func(t *testing.T) {
			l := newLab(t, plain)
			s := l.controller()
			l.load = 2
			l.faults[call] = down
			decided := l.now
			l.pass(s, 20*time.Second)
			if got := s.followed["job/worker"].state.LastChange; !got.Equal(decided) {
				t.Errorf("the last change is said to be of %s, want %s", got, decided)
			}
			l.must(nil, s.history.Flush(t.Context(), l.now))
			if diff := cmp.Diff(want, l.changes()); diff != "" {
				t.Errorf("in the history (-want +got):\n%s", diff)
			}
		})
	}
}
