package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// searches find how many parallel runs of a sweep finish the most, for sweeps whose runs report progress.
type searches struct {
	meter *meter.Meter
	// bySweep are the searches by sweep. reading is set while the logs of a sweep are being read, and due
	// is when to read them next.
	bySweep map[string]*sweep.Search
	reading map[string]bool
	due     map[string]time.Time
	// readings delivers what was read, and woken is signalled for each.
	readings chan reading
	woken    chan struct{}
}

// reading is the progress of a sweep's runs as read from their logs.
type reading struct {
	sweep   string
	search  *sweep.Search
	logs    map[sweep.Attempt]meter.Log
	tallies map[meter.Log]meter.Tally
}

func newSearches(e engine.Engine) *searches {
	return &searches{
		meter: meter.New(e), bySweep: map[string]*sweep.Search{}, reading: map[string]bool{},
		due:      map[string]time.Time{},
		readings: make(chan reading, 1), woken: make(chan struct{}, 1),
	}
}

// open opens the search of a sweep that has just been read, if it reports progress.
func (s *searches) open(ctx context.Context, e engine.Engine, doc domain.SweepDocument) error {
	name := doc.Spec.Name
	if doc.Spec.Progress == nil {
		delete(s.bySweep, name)
		return nil
	}
	if known := s.bySweep[name]; known != nil && known.Of(doc) {
		return nil
	}
	stored, err := engine.Get[domain.SweepParallelism](ctx, e, name)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	s.bySweep[name] = sweep.NewSearch(doc, stored)
	return nil
}

// found returns what was found out about a sweep.
func (s *searches) found(name string) (found domain.SweepParallelism) {
	if search := s.bySweep[name]; search != nil {
		found = search.Found()
	}
	return found
}

// take records a reading, decides, and reports whether the number of parallel runs changes.
func (s *searches) take(r reading, now time.Time, log *slog.Logger) (moved bool) {
	delete(s.reading, r.sweep)
	if s.bySweep[r.sweep] != r.search {
		return false // the sweep has changed
	}
	for attempt, key := range r.logs {
		switch tally := r.tallies[key]; {
		case errors.Is(tally.Err, engine.ErrNotFound):
		case tally.Err != nil:
			r.search.Miss(attempt, now, tally.Err.Error())
		case tally.Lines > 0:
			r.search.Note(attempt, key.Since, tally.At, tally.Steps, tally.Lines)
		}
	}
	if !r.search.Decide(now) {
		return false
	}
	found := r.search.Found()
	log.Info("the number of parallel runs was changed", "sweep", r.sweep, "runs", found.Level, "settled", found.Settled,
		"unknown", found.Unknown)
	return true
}

// search follows the progress of runs of sweeps whose best number of parallel runs is still being searched, and returns
// when to look again. It comes after starting runs, so that a run that is replaced at once is no change.
func (s *sweeper) search(ctx context.Context, now time.Time) (next time.Time, err error) {
	next = now.Add(atLatest)
	for waiting := true; waiting; {
		select {
		case r := <-s.searches.readings:
			if s.searches.take(r, now, s.log) {
				s.stirred, next = true, now
			}
		default:
			waiting = false
		}
	}
	for name, search := range s.searches.bySweep {
		f := s.sweeps[name]
		if f == nil {
			delete(s.searches.bySweep, name)
			continue
		}
		if f.document.Ending || !f.waits {
			continue
		}
		due := search.Watch(f.record.Runs(), now)
		if again := s.searches.due[name]; again.After(due) && !again.After(now.Add(search.Interval())) {
			due = again
		}
		switch {
		case due.IsZero() || s.searches.reading[name]:
		case due.After(now):
			next = earlier(next, due)
		default:
			s.searches.due[name] = now.Add(search.Interval())
			s.searches.read(ctx, f, search, now)
		}
	}
	return next, s.storeSearches(ctx)
}

// read reads the logs of a sweep's runs in a goroutine.
func (s *searches) read(ctx context.Context, f *followedSweep, search *sweep.Search, now time.Time) {
	r := reading{sweep: f.spec.Name, search: search, logs: map[sweep.Attempt]meter.Log{}}
	var logs []meter.Log
	for attempt, since := range search.Read(now) {
		log := meter.Log{
			Member: domain.RunName(r.sweep, attempt.Key), Host: f.record.Runs()[attempt.Key].Assignment.Host,
			Since: since,
		}
		r.logs[attempt] = log
		logs = append(logs, log)
	}
	source := domain.ProgressSource{Pattern: f.spec.Progress.Pattern}
	s.reading[r.sweep] = true
	go func() {
		r.tallies = s.meter.Tallies(ctx, source, logs)
		select {
		case s.readings <- r:
		case <-ctx.Done():
		}
		select { // once it is there to be found
		case s.woken <- struct{}{}:
		default:
		}
	}()
}

// storeSearches stores searches that have changed.
func (s *sweeper) storeSearches(ctx context.Context) error {
	for name, search := range s.searches.bySweep {
		if !search.Changed() || s.sweeps[name].document.Ending {
			continue
		}
		stored, err := engine.Put(ctx, s.reconciler.Engine, search.Found())
		if err != nil {
			return err
		}
		search.Stored(stored)
	}
	return nil
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
