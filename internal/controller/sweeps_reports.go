package controller

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
)

const (
	// reportsAtOnce bounds how many hook calls run at once.
	reportsAtOnce = 8
	// reportRetry is the first interval at which a failed hook call is retried, and reportPatience the longest.
	reportRetry    = 5 * time.Second
	reportPatience = 5 * time.Minute
	// reportsKept bounds how many reports a run keeps for a failing hook: the last ones.
	reportsKept = 10
)

// reporter calls the hooks of sweeps about ended runs, in goroutines beside the sweeper.
type reporter struct {
	// woken is signalled when a hook call has ended.
	woken chan struct{}

	mu        sync.Mutex
	reporting map[reportKey]bool
	finished  map[reportKey]error
	// next is when a sweep's hook may be called again after a failure, and pauses is the last interval, by sweep ID.
	next   map[string]time.Time
	pauses map[string]time.Duration
}

// reportKey identifies the end of a run.
type reportKey struct {
	id, run string
	attempt int
	ended   int64
}

func newReporter() *reporter {
	return &reporter{
		woken: make(chan struct{}, 1), reporting: map[reportKey]bool{}, finished: map[reportKey]error{},
		next: map[string]time.Time{}, pauses: map[string]time.Duration{},
	}
}

// reportBody is the body of a hook call, as JSON.
type reportBody struct {
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

// report calls hooks about pending reports, drops delivered ones, and returns when to look again without an event.
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
				err, ended := r.finished[keyOf(f, key, report)]
				if ended {
					delete(r.finished, keyOf(f, key, report))
					due = r.note(f, err, now)
				}
				return ended && err == nil || f.spec.OnFinish == nil
			})
			if len(left) < len(run.Reports) {
				run.Reports = left
				f.record.Set(key, run)
			}
			for _, report := range left {
				r.call(ctx, s, f, key, report, due, now)
			}
		}
		if due.After(now) && due.Before(next) {
			next = due
		}
	}
	return next
}

// note records the result of a hook call, and returns when the hook may be called again.
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

// call calls a hook about the end of a run in a goroutine, unless that call is in progress or not due,
// or too many are running.
func (r *reporter) call(
	ctx context.Context, s *sweeper, f *followedSweep, run string, report domain.RunReport, due, now time.Time,
) {
	key := keyOf(f, run, report)
	if r.reporting[key] || due.After(now) || len(r.reporting) >= reportsAtOnce {
		return
	}
	r.reporting[key] = true
	hook, body := *f.spec.OnFinish, reportBody{Cluster: f.spec.Cluster, Sweep: f.spec.Name, Run: run, RunReport: report}
	go func() {
		_, err := meter.Call(ctx, hook, body)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("reporting the end of a run to the hook of a sweep failed; trying again", "sweep", body.Sweep,
				"run", run, "error", withoutPath(err, hook.URL))
		}
		r.mu.Lock()
		delete(r.reporting, key)
		r.finished[key] = err
		r.mu.Unlock()
		select {
		case r.woken <- struct{}{}:
		default:
		}
	}()
}

// withoutPath returns what an error says, without the path of a hook's URL: in a chat's webhook, that is the secret.
func withoutPath(err error, address string) string {
	text := err.Error()
	if u, invalid := url.Parse(address); invalid == nil && len(u.Path) > 1 {
		text = strings.NewReplacer(u.EscapedPath(), "/…", u.Path, "/…").Replace(text)
	}
	return text
}
