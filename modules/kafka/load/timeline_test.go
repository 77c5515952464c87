package main

import (
	"math"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h, other histogram
	if got := h.quantile(0.99); got != 0 {
		t.Errorf("of nothing, it is %v", got)
	}
	for i := range 1000 {
		h.add(float64(i + 1))
	}
	for share, want := range map[float64]float64{0: 1, 0.5: 500, 0.99: 990, 1: 1000} {
		if got := h.quantile(share); math.Abs(got-want) > 0.03*want {
			t.Errorf("%v of them take %v, want %v", share, got, want)
		}
	}
	other.add(1e12)
	other.add(-1)
	h.merge(&other)
	if h.total != 1002 || h.quantile(1) < 1e5 || h.quantile(0) > 0.001 {
		t.Errorf("with the extremes, %d take %v to %v", h.total, h.quantile(0), h.quantile(1))
	}
}

func TestTimeline(t *testing.T) {
	l := newTimeline()
	at := time.Unix(1_800_000_000, 0)
	for i := range 20 {
		took := time.Millisecond
		if i == 5 {
			l.note(true)
			l.note(false)
			took = time.Second
		}
		l.acknowledged(took)
		s := l.tick(at.Add(time.Duration(i)*time.Second), 7, uint64(10*i))
		if s.Changing != (i == 5) || s.Acknowledged != 1 || s.Wanted != 7 || s.Lag != uint64(10*i) {
			t.Errorf("second %d is %+v", i, s)
		}
	}
	if p99, growth := l.now(); p99 > 1.1 || growth != 10 {
		t.Errorf("it takes %v ms, and the lag grows by %v a second", p99, growth)
	}
	r := reportOf(newLedger(), l)
	if r.Rest.Records != 19 || r.Rest.P99 > 1.1 || r.Change.Records != 1 || r.Change.P99 < 1000 ||
		len(r.Seconds) != 20 {
		t.Errorf("at rest it is %+v, and while partitions are moved %+v", r.Rest, r.Change)
	}
	for i := range longest {
		l.tick(at.Add(time.Duration(i)*time.Second), 7, 0)
	}
	if got := len(reportOf(newLedger(), l).Seconds); got != longest {
		t.Errorf("it reports %d seconds", got)
	}
}
