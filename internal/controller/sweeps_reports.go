package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
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
	// reportsKept bounds the reports that a run keeps for a failing hook, in bytes: all runs of a part of a record have
	// to fit into an item of the store.
	reportsKept = 1500
)

// reporter calls the hooks of sweeps about ended runs, in goroutines beside the sweeper. It outlives a sweeper that
// fails, so that the next one repeats no call.
type reporter struct {
	ctx context.Context //nolint:containedctx // of the controller
	log *slog.Logger
	// woken is signalled when a hook call has ended.
	woken chan struct{}

	mu sync.Mutex
	// queue are the calls that are due, and calling those in progress.
	queue   []hookCall
	calling map[reportKey]bool
	// hooks are what is known about the hooks of sweeps, by the sweep's ID.
	hooks map[string]*hookState
}

// hookState is what a reporter knows about the hook of a sweep.
type hookState struct {
	// declared is the hook as its sweep declares it.
	declared *domain.ScalingHook
	// delivered are the ends that the hook knows of, for as long as they may be stored as unreported.
	delivered map[reportKey]bool
	// next is when the hook may be called again after a failure, and pause is the last interval.
	next  time.Time
	pause time.Duration
}

// hookCall is a call of a hook about the end of a run.
type hookCall struct {
	key  reportKey
	hook *domain.ScalingHook
	body reportBody
}

// reportKey identifies the end of a run.
type reportKey struct {
	id, run string
	ended   int64
}

func newReporter(ctx context.Context, log *slog.Logger) *reporter {
	return &reporter{
		ctx: ctx, log: log, woken: make(chan struct{}, 1), calling: map[reportKey]bool{},
		hooks: map[string]*hookState{},
	}
}

// reportBody is the body of a hook call, as JSON.
type reportBody struct {
	Cluster string `json:"cluster"`
	Sweep   string `json:"sweep"`
	Run     string `json:"run"`
	domain.RunReport
}

// report queues calls about pending reports, drops delivered ones, and returns when to look again without an event.
func (s *sweeper) report(now time.Time) (next time.Time) {
	r := s.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue, next = nil, now.Add(atLatest)
	for _, f := range s.sweeps {
		if f.document.Ending {
			continue
		}
		hook, stored := r.hookOf(f.document.ID), map[reportKey]bool{}
		if !reflect.DeepEqual(hook.declared, f.spec.OnFinish) {
			hook.declared, hook.next, hook.pause = f.spec.OnFinish, time.Time{}, 0
		}
		for run, state := range f.record.Runs() {
			var left []domain.RunReport
			for _, report := range state.Reports {
				c := hookCall{key: reportKey{f.document.ID, run, report.EndedAt.UnixNano()}}
				stored[c.key] = true
				if hook.delivered[c.key] || f.spec.OnFinish == nil {
					continue
				}
				left = append(left, report)
				c.hook = f.spec.OnFinish
				c.body = reportBody{Cluster: f.spec.Cluster, Sweep: f.spec.Name, Run: run, RunReport: report}
				if !r.calling[c.key] && !hook.next.After(now) {
					r.queue = append(r.queue, c)
				}
			}
			if len(left) < len(state.Reports) {
				state.Reports = left
				f.record.Set(run, state)
			}
		}
		maps.DeleteFunc(hook.delivered, func(key reportKey, _ bool) bool { return !stored[key] })
		if hook.next.After(now) && hook.next.Before(next) {
			next = hook.next
		}
	}
	r.fill()
	return next
}

// withReport adds a report to those of a run, and drops the oldest ones if that is too much to keep.
func withReport(reports []domain.RunReport, report domain.RunReport) []domain.RunReport {
	reports = append(slices.Clone(reports), report)
	for len(reports) > 1 {
		if data, err := json.Marshal(reports); err == nil && len(data) <= reportsKept {
			break
		}
		reports = reports[1:]
	}
	return reports
}

// fill makes queued calls, each in a goroutine, as long as not too many are running. mu is held.
func (r *reporter) fill() {
	for len(r.queue) > 0 && len(r.calling) < reportsAtOnce {
		c := r.queue[0]
		r.queue = r.queue[1:]
		r.calling[c.key] = true
		go r.call(c)
	}
}

// call makes a call, and then the next ones.
func (r *reporter) call(c hookCall) {
	err := meter.CallSecret(r.ctx, *c.hook, c.body)
	if err != nil && r.ctx.Err() == nil {
		r.log.Warn("reporting the end of a run to the hook of a sweep failed; trying again", "sweep", c.body.Sweep,
			"run", c.body.Run, "error", err)
	}
	r.mu.Lock()
	delete(r.calling, c.key)
	r.note(c, err, time.Now())
	r.fill()
	r.mu.Unlock()
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// note records the result of a call. After a failure, the hook's other calls wait, too, unless another hook is declared
// by now. mu is held.
func (r *reporter) note(c hookCall, err error, now time.Time) {
	hook := r.hookOf(c.key.id)
	if err == nil {
		hook.delivered[c.key] = true
	}
	if !reflect.DeepEqual(hook.declared, c.hook) {
		return
	}
	if err == nil {
		hook.next, hook.pause = time.Time{}, 0
		return
	}
	if !hook.next.After(now) {
		hook.pause = min(max(2*hook.pause, reportRetry), reportPatience)
		hook.next = now.Add(hook.pause)
	}
	r.queue = slices.DeleteFunc(r.queue, func(other hookCall) bool { return other.key.id == c.key.id })
}

// hookOf returns what is known about the hook of a sweep. mu is held.
func (r *reporter) hookOf(id string) *hookState {
	if r.hooks[id] == nil {
		r.hooks[id] = &hookState{delivered: map[reportKey]bool{}}
	}
	return r.hooks[id]
}

// keep forgets the hooks of other sweeps, with the calls that are due.
func (r *reporter) keep(documents map[string]domain.SweepDocument) {
	ids := map[string]bool{}
	for _, doc := range documents {
		ids[doc.ID] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.hooks, func(id string, _ *hookState) bool { return !ids[id] })
	r.queue = slices.DeleteFunc(r.queue, func(c hookCall) bool { return !ids[c.key.id] })
}

// rest makes no more calls until the next report: another controller may be making them by now. Those in progress go
// on.
func (r *reporter) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = nil
}
