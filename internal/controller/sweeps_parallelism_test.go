package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// steady is a track whose members log their steps. together is how many steps a second those of a host make
// in total, by their number.
type steady struct {
	*track
	together []float64

	mu sync.Mutex
	// steps are the steps of members by member, as of asOf; read counts the logs that were read.
	steps map[string]float64
	asOf  time.Time
	read  int
}

func (l *steady) Snapshot() engine.Engine { return l }

// Logs returns all steps of a member since its start.
func (l *steady) Logs(_ context.Context, member string, options engine.LogOptions) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if options.Since.IsZero() {
		return nil, nil // it has ended
	}
	l.read++
	now := time.Now()
	on := map[string][]string{}
	l.track.mu.Lock()
	for name, o := range l.members {
		if o.State == domain.StateRunning {
			on[o.Host] = append(on[o.Host], fmt.Sprint(name, o.Run))
		}
	}
	key := fmt.Sprint(member, l.members[member].Run)
	l.track.mu.Unlock()
	for _, members := range on {
		for _, name := range members {
			l.steps[name] += now.Sub(l.asOf).Seconds() * l.together[min(len(members),
				len(l.together))-1] / float64(len(members))
		}
	}
	l.asOf = now
	var lines []string
	for step := range int(l.steps[key]) {
		lines = append(lines, fmt.Sprint("step ", step))
	}
	return lines, nil
}

// A controller finds how many parallel runs finish the most, and its successor continues from there. After
// that it reads no more logs.
func TestSweeperFindsParallelism(t *testing.T) {
	t.Parallel()
	l := &steady{together: []float64{100, 180, 120}, steps: map[string]float64{}, asOf: time.Now()}
	l.track = newTrack(t, func(s *domain.Sweep) {
		s.MaxParallel, s.Runs = nil, map[string]map[string]string{}
		for i := range 200 {
			s.Runs[fmt.Sprintf("s-%d", i)] = nil
		}
		s.Progress = &domain.SweepProgress{Pattern: `step (?P<step>\d+)`, Settle: new(domain.Duration(time.Second))}
	})
	s, restarted := l.sweeper(l), false
	var found domain.SweepParallelism
	for end := time.Now().Add(patience.Limit); !found.Settled; {
		if _, err := s.look(t.Context(), time.Now()); err != nil || time.Now().After(end) {
			t.Fatalf("%v: %+v", err, found)
		}
		now, err := reconcile.Reconciler{Engine: l}.SweepRuns(t.Context(), "lr")
		l.must(nil, err)
		if found = now.Parallelism; found.Best > 0 && !restarted {
			s, restarted = l.sweeper(l), true
		}
		if found.Level > 0 && len(l.members) > 2*found.Level { // of two hosts
			l.finish()
		}
		select {
		case <-s.searches.woken:
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Logf("%d at a time: %v", found.Level, found.Throughput)
	if found.Level < 1 || found.Level > 3 || !restarted {
		t.Errorf("found %+v", found)
	}
	_, err := s.look(t.Context(), time.Now())
	l.must(nil, err)
	read := l.read
	for range 10 {
		_, err := s.look(t.Context(), time.Now().Add(time.Minute))
		l.must(nil, err)
	}
	if l.read > read {
		t.Errorf("once it is found, %d logs are read", l.read-read)
	}
	l.must(nil, reconcile.Reconciler{Engine: l}.DeleteSweep(t.Context(), "lr", nil))
	if items, err := l.List(t.Context(), domain.SweepParallelismKind); err != nil || len(items) > 0 {
		t.Errorf("of a sweep that is gone there is left %v, %v", items, err)
	}
}

// No logs are read for a sweep without progress, or without waiting runs.
func TestSweeperReadsNoLogs(t *testing.T) {
	for name, change := range map[string]func(s *domain.Sweep){
		"without progress": func(*domain.Sweep) {},
		"none waits": func(s *domain.Sweep) {
			s.Runs = map[string]map[string]string{"s-1": nil, "s-2": nil}
			s.Progress = &domain.SweepProgress{Pattern: "step"}
		},
	} {
		l := &steady{together: []float64{1}, steps: map[string]float64{}, asOf: time.Now()}
		l.track = newTrack(t, change)
		s := l.sweeper(l)
		for i := range 20 {
			_, err := s.look(t.Context(), time.Now().Add(time.Duration(i)*time.Minute))
			l.must(nil, err)
		}
		if len(l.members) == 0 || l.read > 0 {
			t.Errorf("%s: %d logs of %d members were read", name, l.read, len(l.members))
		}
	}
}
