package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// Bytes kept from the end of the log of an ended run; more for one that did not succeed.
const (
	keptOfSuccess = 4_000
	keptOfFailure = 16_000
)

// logsAtOnce bounds how many logs of ended runs are read and stored at once.
const logsAtOnce = 16

// settle records the results of started runs, stores them, and removes the members of those that have ended.
func (s *sweeper) settle(ctx context.Context, observed []domain.Observed, now time.Time) error {
	members := map[string]map[string]domain.Observed{}
	for _, o := range observed {
		if s.sweeps[o.Group] != nil {
			if members[o.Group] == nil {
				members[o.Group] = map[string]domain.Observed{}
			}
			members[o.Group][o.Name] = o
		}
	}
	lost, err := s.reconciler.LostHosts(ctx, observed)
	if err != nil {
		return err
	}
	beside := s.crowd(members)
	for name, f := range s.sweeps {
		if f.document.Ending {
			continue
		}
		s.forgetGone(f, members[name], now)
		if err := s.settleRuns(ctx, f, members[name], lost, beside, now); err != nil {
			return err
		}
		s.cancelFailing(f, now)
	}
	if err := s.store(ctx); err != nil {
		return err
	}
	return s.removeOthers(ctx, members, now)
}

// forgetGone forgets the runs that a sweep no longer has, with their logs. Until their members have ended, it keeps
// where these are, as they occupy that.
func (s *sweeper) forgetGone(f *followedSweep, members map[string]domain.Observed, now time.Time) {
	for key, run := range f.record.Runs() {
		if _, stays := f.spec.Runs[key]; stays {
			continue
		}
		name := domain.RunName(f.spec.Name, key)
		if o, there := members[name]; !there || o.State.Ended() || run.Assignment == nil {
			f.record.Forget(key)
			s.peaks.take(name)
			s.stirred = true
			f.logless = append(f.logless, key)
		} else if kept := sweep.Removed(run, now); !reflect.DeepEqual(kept, run) {
			s.remember(f, key, kept, now)
		}
	}
}

// remember records the state of a run. If it has ended, and is not queued again, the hook is to be called.
func (s *sweeper) remember(f *followedSweep, key string, run domain.Run, now time.Time) {
	before := f.record.Runs()[key]
	if before.Active() && !run.Active() {
		s.peaks.take(domain.RunName(f.spec.Name, key)) // its next attempt has its own
	}
	ended := func(run domain.Run) bool { return sweep.Now(f.document, f.spec.Run(key), run).State.Ended() }
	if f.spec.OnFinish != nil && ended(run) && !ended(before) {
		run = s.reported(f, key, run, now)
	}
	f.record.Set(key, run)
	s.stirred = true
}

// settleRuns records what has become of the started runs of one sweep.
func (s *sweeper) settleRuns(
	ctx context.Context, f *followedSweep, members map[string]domain.Observed, lost map[string]string, beside crowd,
	now time.Time,
) error {
	var ended []string
	for key, run := range f.record.Runs() {
		if !run.Active() {
			continue
		}
		if own := f.spec.Run(key); sweep.Stale(f.document, own, run) { // its member is outdated
			s.remember(f, key, sweep.Outdated(f.document, own, run, now), now)
			continue
		}
		o, found := members[domain.RunName(f.spec.Name, key)]
		why, gone := lost[o.Host]
		switch {
		case !found || o.Run != run.Batch:
			s.remember(f, key, sweep.Lost(run, "its member vanished", now), now)
		case gone && o.State != domain.StateCompleted: // an engine may have ended it because of that
			s.remember(f, key, sweep.Lost(run, why, now), now)
		case o.State.Ended():
			ended = append(ended, key)
		}
	}
	logs, err := s.keepLogs(ctx, f, ended, members)
	if err != nil {
		return err
	}
	for i, key := range ended {
		run, o := f.record.Runs()[key], members[domain.RunName(f.spec.Name, key)]
		run.PeakMemoryMiB, run.PeakGPUMemoryMiB = s.peaks.take(o.Name)
		run = sweep.Ended(f.spec, run, o, logs[i], beside.on(run), now)
		s.remember(f, key, run, now)
	}
	return nil
}

// reported adds the report of its end to a run.
func (s *sweeper) reported(f *followedSweep, key string, run domain.Run, now time.Time) domain.Run {
	report := sweep.Report(run, s.reconciler.ResultsPlace(f.spec.Name, key, run), now)
	run.Reports = withReport(run.Reports, report)
	return run
}

// crowd is the number of runs by device.
type crowd map[string]int

// crowd returns the number of active runs of all sweeps by device. Ended runs don't count: of several that ran out of
// memory at once, none held any.
func (s *sweeper) crowd(members map[string]map[string]domain.Observed) crowd {
	c := crowd{}
	for name, f := range s.sweeps {
		for key, run := range f.record.Runs() {
			o, found := members[name][domain.RunName(name, key)]
			if !run.Active() || !found || o.Run != run.Batch || o.State.Ended() {
				continue
			}
			for _, uuid := range run.Assignment.GPUs.UUIDs() {
				c[uuid]++
			}
		}
	}
	return c
}

// on returns how many runs share the devices of a run: the highest number of any of them.
func (c crowd) on(run domain.Run) int {
	most := 0
	for _, uuid := range run.Assignment.GPUs.UUIDs() {
		most = max(most, c[uuid])
	}
	return most
}

// keepLogs returns the last log lines of ended runs, and stores a part of them, as their members
// are about to be removed.
func (s *sweeper) keepLogs(
	ctx context.Context, f *followedSweep, keys []string, members map[string]domain.Observed,
) ([][]string, error) {
	logs, from := make([][]string, len(keys)), s.reconciler.Engine.Snapshot()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(logsAtOnce)
	for i, key := range keys {
		group.Go(func() (err error) {
			logs[i], err = s.keepLog(ctx, from, f, key, members[domain.RunName(f.spec.Name, key)])
			return err
		})
	}
	return logs, group.Wait()
}

func (s *sweeper) keepLog(
	ctx context.Context, from engine.Telemetry, f *followedSweep, key string, o domain.Observed,
) ([]string, error) {
	lines, err := from.Logs(ctx, o.Name, engine.LogOptions{Tail: sweep.LogTail})
	if errors.Is(err, engine.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		// Without the log it is unknown whether it ran out of memory, but it has ended.
		s.log.Error("reading the log of a run failed", "run", o.Name, "error", err)
		lines = []string{fmt.Sprintf("(its log could not be read: %v)", err)}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	most := keptOfFailure
	if o.State == domain.StateCompleted {
		most = keptOfSuccess
	}
	kept := domain.SweepLog{Sweep: f.spec.Name, Run: key, ID: f.document.ID, Lines: lastBytes(lines, most)}
	for {
		_, err := engine.Put(ctx, s.reconciler.Engine, kept)
		if !errors.Is(err, engine.ErrConflict) {
			return lines, err
		}
		former, err := engine.Get[domain.SweepLog](ctx, s.reconciler.Engine, kept.Key())
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		kept.Revision = former.Revision
	}
}

// lastBytes returns the last lines that fit into this many bytes; at least the last line, of which it cuts the start.
func lastBytes(lines []string, most int) []string {
	size := 0
	for i, line := range slices.Backward(lines) {
		if size += len(line) + 1; size > most {
			if i == len(lines)-1 {
				return []string{line[len(line)-most:]}
			}
			return lines[i+1:]
		}
	}
	return lines
}

// cancelFailing cancels the runs of a sweep of which too many have failed.
func (s *sweeper) cancelFailing(f *followedSweep, now time.Time) {
	why, all := sweep.Failing(f.document, f.spec, f.record.Runs())
	if why == "" {
		return
	}
	for _, key := range f.keys {
		run := f.record.Runs()[key]
		if state := sweep.Now(f.document, f.spec.Run(key), run).State; !state.Ended() && (all || !run.Active()) {
			s.remember(f, key, sweep.Cancelled(f.document, f.spec.Run(key), run, why, now), now)
		}
	}
}

// removeOthers removes the members of sweeps that belong to no active run, and records which ones are still there.
func (s *sweeper) removeOthers(
	ctx context.Context, members map[string]map[string]domain.Observed, now time.Time,
) error {
	there := map[string]bool{}
	var remove []string
	for name, f := range s.sweeps {
		left := len(f.leaving)
		f.leaving = map[string]domain.Assignment{}
		for member, o := range members[name] {
			run := f.record.Runs()[o.Role]
			if run.Active() && run.Batch == o.Run {
				continue
			}
			there[member], f.leaving[o.Role] = true, sweep.LeavingAt(o, run)
			if f.document.Ending {
				continue // its destroy removes them
			}
			if removedAt, is := s.removed[member]; !is || now.Sub(removedAt) >= removeAgain || now.Before(removedAt) {
				remove = append(remove, member)
				s.removed[member] = now
			}
		}
		s.stirred = s.stirred || len(f.leaving) < left
		f.littered = f.littered || len(f.leaving) < left && len(f.spec.Config) > 0
	}
	for member := range s.removed {
		if !there[member] {
			delete(s.removed, member)
		}
	}
	if err := s.dropLogs(ctx); err != nil || len(remove) == 0 {
		return err
	}
	return s.reconciler.Engine.Remove(ctx, remove)
}

// tidy deletes the files of removed runs when due, and returns when it is due next; zero if there is nothing to delete.
func (s *sweeper) tidy(ctx context.Context, now time.Time) (next time.Time, err error) {
	for name, f := range s.sweeps {
		if !f.littered || f.document.Ending {
			continue
		}
		due := f.tidied.Add(tidyEvery)
		if due.After(now) && !due.After(now.Add(tidyEvery)) {
			next = earlier(next, due)
			continue
		}
		declared := sweep.GroupOf(f.spec)
		if err := s.reconciler.Engine.Prune(ctx, name, &declared); err != nil {
			return next, err
		}
		f.littered, f.tidied = false, now
	}
	return next, nil
}

// dropLogs deletes the logs of runs that their sweeps no longer have.
func (s *sweeper) dropLogs(ctx context.Context) error {
	for name, f := range s.sweeps {
		for len(f.logless) > 0 {
			key := engine.Key{Kind: domain.SweepLogKind, Name: name + "/" + f.logless[0]}
			if err := s.reconciler.Engine.Delete(ctx, key); err != nil {
				return err
			}
			f.logless = f.logless[1:]
		}
	}
	return nil
}
