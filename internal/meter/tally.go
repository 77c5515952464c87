package meter

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Log is what a member has written since a time.
type Log struct {
	Member, Host string
	Since        time.Time
}

// Tally is a member's progress by its log.
type Tally struct {
	// Lines is how many lines report a step, and Steps the number of steps since the first of them.
	Lines int
	Steps float64
	// At is when the log was read.
	At time.Time
	// Err is why the progress is unknown.
	Err error
}

// Tallies reads logs, and returns the progress of their members by the lines that match the source's pattern.
func (m *Meter) Tallies(ctx context.Context, source domain.ProgressSource, logs []Log) map[Log]Tally {
	tallies := make(map[Log]Tally, len(logs))
	pattern, err := regexp.Compile(source.Pattern)
	if err != nil {
		for _, log := range logs {
			tallies[log] = Tally{Err: err}
		}
		return tallies
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.Limit, fmt.Errorf("no answer within %s", m.Limit))
	defer cancel()
	r := &reading{meter: m, now: time.Now(), patience: ctx}
	e := m.engine.Snapshot() // each list is read once for all logs
	requests := make([]*sharedRequest[Tally], len(logs))
	for i, log := range logs {
		all := r.semaphore("logs", allLogsAtOnce)
		requests[i] = share(r, log, r.semaphore("logs of "+log.Host, logsAtOnce),
			func(ctx context.Context) (Tally, error) {
				if err := all.acquire(ctx); err != nil {
					return Tally{}, err
				}
				defer all.release()
				return tallyOf(ctx, e, log, pattern)
			})
	}
	var running sync.WaitGroup
	for _, run := range r.requests {
		running.Go(func() { run(ctx) })
	}
	for i, log := range logs {
		tally, err := requests[i].wait()
		tally.Err = err
		tallies[log] = tally
	}
	return tallies
}

func tallyOf(ctx context.Context, e engine.Telemetry, log Log, pattern *regexp.Regexp) (t Tally, err error) {
	lines, err := readLines(ctx, e, log.Member, log.Since, time.Since(log.Since))
	if err != nil {
		return t, err
	}
	if t.At = time.Now(); len(lines) >= maxLines {
		return t, fmt.Errorf("its log has at least %d lines since %s, too many to follow", maxLines,
			log.Since.UTC().Format(time.RFC3339))
	}
	var counter counter
	t.Lines, counter = count(lines, pattern)
	t.Steps = counter.sum
	if len(stepGroups(pattern)) == 0 {
		t.Steps = float64(max(t.Lines-1, 0))
	}
	if math.IsInf(t.Steps, 0) {
		return t, errTooLarge
	}
	return t, nil
}
