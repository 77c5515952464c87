package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
)

const (
	// reportsAtOnce bounds how many hooks are told something at once.
	reportsAtOnce = 8
	// reportRetry is how soon a hook is told again that could not be, at first, and reportPatience after a while.
	reportRetry    = 5 * time.Second
	reportPatience = 5 * time.Minute
	// reportsKept bounds what a run keeps for a hook that can't be told: the last ones.
	reportsKept = 10
)

// reporter tells the hooks of sweeps what has become of runs, beside all else that the sweeper does.
type reporter struct {
	// woken receives something when a report has come to its end.
	woken chan struct{}

	mu      sync.Mutex
	telling map[reportKey]bool
	told    map[reportKey]error
	// next is when a sweep's hook may be told again after a failure, and pauses how long it waited for that, by the
	// sweeps' IDs.
	next   map[string]time.Time
	pauses map[string]time.Duration
}

// reportKey tells a report from all others.
type reportKey struct {
	id, run string
	attempt int
	ended   int64
}

func newReporter() *reporter {
	return &reporter{
		woken: make(chan struct{}, 1), telling: map[reportKey]bool{}, told: map[reportKey]error{}, next: map[string]time.Time{}, pauses: map[string]time.Duration{},
	}
}

// said is what a hook is told, as JSON.
type said struct {
	Cluster string `json:"cluster"`
	Sweep   string `json:"sweep"`
	Run     string `json:"run"`
	domain.RunReport
}

func keyOf(f *followedSweep, run string, r domain.RunReport) reportKey {
	key := reportKey{id: f.document.ID, run: run, attempt: r.Attempt}
	if r.FinishedAt != nil {
		key.ended = r.FinishedAt.UnixNano()
	}
	return key
}

// report tells hooks what they have yet to be told, forgets what they were, and returns when to look again though
// nothing happens.
func (s *sweeper) report(ctx context.Context, now time.Time) (next time.Time) {
	r := s.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	next = now.Add(atLatest)
	for _, f := range s.sweeps {
		if f.document.Ending {
			continue
		}
		due := r.next[f.document.ID]
		for key, run := range f.record.Runs() {
			if len(run.Reports) == 0 {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(run.Reports), func(report domain.RunReport) bool {
				err, ended := r.told[keyOf(f, key, report)]
				if ended {
					delete(r.told, keyOf(f, key, report))
					due = r.note(f, err, now)
				}
				return ended && err == nil || f.spec.OnFinish == nil
			})
			if len(left) < len(run.Reports) {
				run.Reports = left
				f.record.Set(key, run)
			}
			for _, report := range left {
				r.tell(ctx, s, f, key, report, due, now)
			}
		}
		if due.After(now) && due.Before(next) {
			next = due
		}
	}
	return next
}

// note notes how a hook was told something, and returns when it may be told again.
func (r *reporter) note(f *followedSweep, err error, now time.Time) (due time.Time) {
	id := f.document.ID
	if err == nil {
		delete(r.next, id)
		delete(r.pauses, id)
		return due
	}
	if !r.next[id].After(now) {
		r.pauses[id] = min(max(2*r.pauses[id], reportRetry), reportPatience)
		r.next[id] = now.Add(r.pauses[id])
	}
	return r.next[id]
}

// tell tells a hook of an attempt, in a goroutine, unless that is under way, or not due, or too many are.
func (r *reporter) tell(ctx context.Context, s *sweeper, f *followedSweep, run string, report domain.RunReport, due, now time.Time) {
	key := keyOf(f, run, report)
	if r.telling[key] || due.After(now) || len(r.telling) >= reportsAtOnce {
		return
	}
	r.telling[key] = true
	hook, told := *f.spec.OnFinish, said{Cluster: f.spec.Cluster, Sweep: f.spec.Name, Run: run, RunReport: report}
	go func() {
		_, err := meter.Call(ctx, hook, told)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the hook of a sweep was not told of the end of a run; trying again", "sweep", told.Sweep, "run", run, "error", err)
		}
		r.mu.Lock()
		delete(r.telling, key)
		r.told[key] = err
		r.mu.Unlock()
		select {
		case r.woken <- struct{}{}:
		default:
		}
	}()
}
