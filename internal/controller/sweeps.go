package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

const (
	// sweepsLock is held by the controller that starts the runs of sweeps.
	sweepsLock = "sweeps"
	// busyRetry is how soon to retry runs that could not start because somebody else held a lock.
	busyRetry = 500 * time.Millisecond
	// measureEvery is how often free memory is measured that runs wait for.
	measureEvery = 500 * time.Millisecond
	// startAgain is how often to try to start runs if no run has changed, as a group may have freed room. lookAtCards
	// is the same for runs that wait for GPUs, which a foreign process may have freed.
	startAgain  = 5 * time.Second
	lookAtCards = time.Second
	// removeAgain is how soon members that are still there are removed again, as an engine may lose a removal.
	removeAgain = 10 * time.Second
	// tidyEvery is how often the files of removed runs are deleted.
	tidyEvery = 30 * time.Second
	// launchPause is how long a run waits after the engine failed to start it.
	launchPause = 10 * time.Second
)

// sweepPace limits looks after events. It is quick, so that the next run starts soon after one ends.
var sweepPace = engine.Pace{Factor: 12, Longest: time.Second}

// followSweeps returns the duty to run sweeps. Hook calls go on until ctx is done, whatever ends the duty.
func followSweeps(ctx context.Context, log *slog.Logger) duty {
	reports := newReporter(ctx, log)
	return func(ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger) error {
		return watchSweeps(ctx, r, events, log, reports)
	}
}

// watchSweeps starts the runs of sweeps and records their results, in one controller of a cluster at a time.
func watchSweeps(
	ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger, reports *reporter,
) error {
	if err := awaitSweeps(ctx, r.Engine, events); err != nil {
		return err
	}
	holder := engine.Holder{
		Who: "controller", Process: os.Getpid(), Operation: "starting runs of sweeps", Since: time.Now(),
		Controller: true,
	}
	held, release, err := r.Engine.Hold(ctx, sweepsLock, holder)
	if _, locked := errors.AsType[*engine.LockedError](err); locked {
		pause(ctx, standby)
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(newSweeper(r, log, reports).run(held, events), release())
}

// awaitSweeps returns once there is a sweep.
func awaitSweeps(ctx context.Context, e engine.Engine, events <-chan struct{}) error {
	for {
		start := time.Now()
		items, err := e.Snapshot().List(ctx, domain.SweepKind)
		if err != nil || len(items) > 0 {
			return err
		}
		engine.ResidentPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, time.Now().Add(atLatest)); err != nil {
			return err
		}
	}
}

// sweeper starts the runs of a cluster's sweeps. It is not safe for concurrent use, and the only
// writer of the runs' state.
type sweeper struct {
	reconciler reconcile.Reconciler
	log        *slog.Logger
	logged     faults
	documents  engine.Decoded[domain.SweepDocument, *domain.SweepDocument]
	sweeps     map[string]*followedSweep
	peaks      peaks
	reports    *reporter
	searches   *searches
	// removed are members that are being removed, and since when.
	removed map[string]time.Time
	// stirred is set if a sweep or a run has changed since the last attempt to start runs; again is when
	// to try even if none has.
	stirred bool
	again   time.Time
	// asks is set if any sweep has a request for room.
	asks bool
}

// followedSweep is a sweep that the controller runs.
type followedSweep struct {
	document domain.SweepDocument
	spec     domain.Sweep
	keys     []string
	record   *sweep.Record
	batch    int
	// leaving are the keys of runs whose former members are still there, with what those occupy. logless are the keys
	// of removed runs whose logs have yet to be deleted.
	leaving map[string]domain.Assignment
	logless []string
	// littered is set if removed runs may have left files, and tidied is when such files were last deleted.
	littered bool
	tidied   time.Time
	// waits is set if a run of it waits, and busy if one waits or is active.
	waits, busy bool
}

// active reports whether a run of the sweep is active.
func (f *followedSweep) active() bool {
	for _, run := range f.record.Runs() {
		if run.Active() {
			return true
		}
	}
	return false
}

func newSweeper(r reconcile.Reconciler, log *slog.Logger, reports *reporter) *sweeper {
	return &sweeper{
		reconciler: r, log: log, logged: faults{}, sweeps: map[string]*followedSweep{}, removed: map[string]time.Time{},
		peaks: newPeaks(), reports: reports, searches: newSearches(r.Engine),
	}
}

// run looks after each event, until the event stream ends or a write fails, so that the state has to be read again.
func (s *sweeper) run(ctx context.Context, events <-chan struct{}) error {
	defer s.reports.rest()
	for {
		start := time.Now()
		next, err := s.look(ctx, start)
		if s.logged.news(everything, err) && err != nil && ctx.Err() == nil {
			s.log.Error("reconciling sweeps failed; trying again", "error", err)
		}
		if _, launch := errors.AsType[*reconcile.LaunchError](err); err != nil && !launch {
			// It is unknown whether the last write took effect, so read everything again.
			pause(ctx, afterFault)
			return ctx.Err()
		}
		s.pace().Rest(ctx, start)
		if err := s.await(ctx, events, next); err != nil {
			return err
		}
	}
}

// pace returns the pace of looks, which is slow once all runs have ended.
func (s *sweeper) pace() engine.Pace {
	for _, f := range s.sweeps {
		if f.busy {
			return sweepPace
		}
	}
	return engine.ResidentPace
}

// await returns after an event, after a hook call has ended or logs were read, or at the given time.
func (s *sweeper) await(ctx context.Context, events <-chan struct{}, moment time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-s.reports.woken:
			cancel(errNews)
		case <-s.searches.woken:
			cancel(errNews)
		case <-ctx.Done():
		}
	}()
	err := engine.Await(ctx, events, moment)
	cancel(nil)
	<-watching
	if errors.Is(context.Cause(ctx), errNews) {
		return nil
	}
	return err
}

// errNews ends a wait when a hook call has ended, or logs were read.
var errNews = errors.New("a hook call has ended, or logs were read")

// look looks after all sweeps, and returns when to look again without an event.
func (s *sweeper) look(ctx context.Context, now time.Time) (next time.Time, err error) {
	requests, err := s.read(ctx)
	if err != nil || len(s.sweeps) == 0 && len(requests) == 0 {
		return now.Add(atLatest), err
	}
	again, err := s.fulfil(ctx, requests, now)
	if err != nil {
		return next, err
	}
	observed, err := s.reconciler.Engine.Observe(ctx, "")
	if err != nil {
		return next, err
	}
	if err := s.settle(ctx, observed, now); err != nil {
		return next, err
	}
	next = earlier(again, earlier(s.peaks.measure(ctx, s, now), s.report(now)))
	due, err := s.tidy(ctx, now)
	if err != nil {
		return next, err
	}
	next = earlier(next, due)
	if err := s.store(ctx); err != nil { // the results of hook calls
		return next, err
	}
	due, err = s.start(ctx, now)
	next = earlier(next, due)
	if err != nil {
		return next, err
	}
	due, err = s.search(ctx, now)
	return earlier(next, due), err
}

// start starts waiting runs if there may be room now that there was not at the last try, and returns when to try
// again; zero if none waits.
func (s *sweeper) start(ctx context.Context, now time.Time) (again time.Time, err error) {
	queues, waits, gpus := s.queues(), false, false
	for _, q := range queues {
		if q.Waits() {
			waits, gpus = true, gpus || q.Spec.GPUs != nil
		}
	}
	if !waits {
		if s.asks {
			err = s.reconciler.WithdrawRoom(ctx)
		}
		return time.Time{}, err
	}
	if !s.stirred && now.Before(s.again) && s.again.Before(now.Add(startAgain)) {
		return s.again, nil
	}
	s.stirred = false
	admission, free, err := s.reconciler.StartRuns(ctx, queues, s)
	if _, launch := errors.AsType[*reconcile.LaunchError](err); launch {
		s.stirred = true
		return now.Add(busyRetry), errors.Join(err, s.takeBack(ctx, err, now))
	}
	if err != nil {
		return time.Time{}, err
	}
	held := slices.ContainsFunc(queues, func(q sweep.Queue) bool { return q.Held != "" })
	s.again = time.Now().Add(startAgain)
	for _, due := range []struct {
		wanted bool
		at     time.Time
	}{
		{!admission.Next.IsZero(), admission.Next},
		{gpus, time.Now().Add(lookAtCards)},
		{admission.Measured, time.Now().Add(measureEvery)},
		{!free || held || len(admission.Starts) > 0, time.Now().Add(busyRetry)},
	} {
		if due.wanted && due.at.Before(s.again) {
			s.again = due.at
		}
	}
	return s.again, nil
}

// read reads new and changed sweeps, forgets deleted ones, and returns the users' requests for runs.
func (s *sweeper) read(ctx context.Context) (requests map[string]domain.SweepRequest, err error) {
	snapshot := s.reconciler.Engine.Snapshot()
	documents, err := s.documents.List(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	s.reports.keep(documents)
	if requests, err = engine.List[domain.SweepRequest](ctx, snapshot); err != nil {
		return nil, err
	}
	asked, err := engine.List[domain.RoomRequest](ctx, snapshot)
	if err != nil {
		return nil, err
	}
	s.asks = slices.ContainsFunc(slices.Collect(maps.Values(asked)), func(r domain.RoomRequest) bool { return r.Sweep })
	maps.DeleteFunc(s.sweeps, func(name string, f *followedSweep) bool {
		doc, found := documents[name]
		if found && doc.ID == f.document.ID {
			return false
		}
		s.stirred = true
		for key := range f.record.Runs() { // a later sweep of the same name has its own
			s.peaks.take(domain.RunName(name, key))
		}
		return true
	})
	var chunks map[string]domain.SweepRuns
	var records map[string]domain.SweepRecord
	for name, doc := range documents {
		f := s.sweeps[name]
		if f != nil && f.document.Revision == doc.Revision {
			continue
		}
		if chunks == nil {
			if chunks, err = engine.List[domain.SweepRuns](ctx, s.reconciler.Engine); err != nil {
				return nil, err
			}
		}
		spec, missing := sweep.Join(doc, chunks)
		if len(missing) > 0 {
			continue // it has just been changed again
		}
		if f == nil {
			if records == nil {
				if records, err = engine.List[domain.SweepRecord](ctx, s.reconciler.Engine); err != nil {
					return nil, err
				}
			}
			f = &followedSweep{record: sweep.OpenRecord(doc, records)}
			for _, run := range f.record.Runs() {
				f.batch = max(f.batch, run.Batch)
			}
			s.sweeps[name] = f
		}
		if err := s.searches.open(ctx, s.reconciler.Engine, doc); err != nil {
			return nil, err
		}
		f.document, f.spec, f.keys = doc, spec, spec.Keys()
		s.stirred = true
	}
	return requests, nil
}

// queues returns the sweeps with their waiting runs.
func (s *sweeper) queues() []sweep.Queue {
	var queues []sweep.Queue
	for _, name := range slices.Sorted(maps.Keys(s.sweeps)) {
		f := s.sweeps[name]
		q := sweep.Queue{Document: f.document, Spec: f.spec, Keys: f.keys, Runs: f.record.Runs()}
		q.Leaving, q.Parallelism = f.leaving, s.searches.found(name)
		if f.document.Ending {
			q.Keys = nil
		}
		f.waits = q.Waits()
		f.busy = f.waits || f.active()
		queues = append(queues, q)
	}
	return queues
}

// Batch returns the number of a sweep's next batch of starts.
func (s *sweeper) Batch(name string) int { return s.sweeps[name].batch + 1 }

// KeepStarts stores runs as started, before any of them starts.
func (s *sweeper) KeepStarts(ctx context.Context, started []reconcile.StartedRun) error {
	for _, run := range started {
		f := s.sweeps[run.Sweep]
		f.batch = max(f.batch, run.Run.Batch)
		f.record.Set(run.Key, run.Run)
	}
	return s.store(ctx)
}

// store stores the changed parts of the runs' state.
func (s *sweeper) store(ctx context.Context) error {
	for _, f := range s.sweeps {
		if f.document.Ending {
			continue
		}
		for _, record := range f.record.Changed() {
			stored, err := engine.Put(ctx, s.reconciler.Engine, record)
			if err != nil {
				return err
			}
			f.record.Stored(stored)
		}
	}
	return nil
}

// takeBack queues the runs again, after a pause, that the engine failed to start.
func (s *sweeper) takeBack(ctx context.Context, launch error, now time.Time) error {
	observed, err := s.reconciler.Engine.Observe(ctx, "")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, o := range observed {
		there[o.Name] = true
	}
	later := now.Add(launchPause)
	for name, f := range s.sweeps {
		for key, run := range f.record.Runs() {
			if run.Active() && run.Batch == f.batch && !there[domain.RunName(name, key)] {
				run = sweep.Lost(run, launch.Error(), now)
				run.NotBefore = &later
				f.record.Set(key, run)
			}
		}
	}
	return s.store(ctx)
}
