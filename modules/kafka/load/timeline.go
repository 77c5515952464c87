package main

import (
	"sync"
	"time"
)

const (
	// recent is over how many seconds /status computes the latency and the growth of the lag.
	recent = 10
	// longest is the maximum number of seconds in the report: the last ones.
	longest = 3600
)

// second holds the measurements of one second.
type second struct {
	Time         time.Time `json:"time"`
	Wanted       float64   `json:"wanted"`
	Acknowledged uint64    `json:"acknowledged"`
	P50          float64   `json:"p50_ms"`
	P99          float64   `json:"p99_ms"`
	Lag          uint64    `json:"lag"`
	// Changing reports whether partitions were being moved, according to the rebalancer.
	Changing bool `json:"changing"`
}

// timeline holds the measurements by second.
type timeline struct {
	mu      sync.Mutex
	current *histogram
	last    []*histogram
	seconds []second
	// rest has the latencies while no partition was being moved, change while some were.
	rest, change histogram
	changing     bool
}

func newTimeline() *timeline { return &timeline{current: &histogram{}} }

// acknowledged adds a record's latency.
func (t *timeline) acknowledged(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.add(float64(took) / float64(time.Millisecond))
}

// note records whether partitions are being moved. A second during part of which some were counts as one.
func (t *timeline) note(changing bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing = t.changing || changing
}

// tick ends a second.
func (t *timeline) tick(now time.Time, wanted float64, lag uint64) second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := second{now, wanted, t.current.total, t.current.quantile(0.5), t.current.quantile(0.99), lag, t.changing}
	if t.changing {
		t.change.merge(t.current)
	} else {
		t.rest.merge(t.current)
	}
	t.last = append(t.last, t.current)
	t.last = t.last[max(0, len(t.last)-recent):]
	t.seconds = append(t.seconds, s)
	t.seconds = t.seconds[max(0, len(t.seconds)-longest):]
	t.current, t.changing = &histogram{}, false
	return s
}

// now returns the latency over the last seconds, and the growth of the lag in records per second.
func (t *timeline) now() (p99, growth float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all histogram
	for _, h := range t.last {
		all.merge(h)
	}
	if begin := max(0, len(t.seconds)-1-recent); len(t.seconds) > 1 {
		first, last := t.seconds[begin], t.seconds[len(t.seconds)-1]
		growth = (float64(last.Lag) - float64(first.Lag)) / float64(len(t.seconds)-1-begin)
	}
	return all.quantile(0.99), growth
}

// latency summarises how long records took, in milliseconds.
type latency struct {
	Records uint64  `json:"records"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

func latencyOf(h *histogram) latency { return latency{h.total, h.quantile(0.5), h.quantile(0.99)} }
