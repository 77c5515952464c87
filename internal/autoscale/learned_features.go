package autoscale

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Observation is what the state of a learned algorithm is computed from, at the moment of a decision.
type Observation struct {
	Now time.Time
	// Count is the number of members that there should be, Ready of those working, and Max the maximum count.
	Count, Ready, Max int
	// Every is the time between two decisions. LastChange is when the count last changed; zero if it never did.
	Every      time.Duration
	LastChange time.Time
	// Load is the total load in members: 2.5 is what two and a half members carry.
	Load float64
	// Lag is the work that waits, in members times seconds: 10 is what one member works off in ten seconds.
	Lag float64
	// CPU is a fraction, P99 a fraction of the latency bound, and Skew how unevenly the load is spread.
	CPU, P99, Skew float64
	// Reassigning means that data moves between members.
	Reassigning bool
}

// LoadHistory is what the slopes of the load and the growth of the lag are computed from. It takes a few kilobytes at
// most.
type LoadHistory struct {
	// Samples cover the longest slope, oldest first.
	Samples []LoadSample `json:"samples,omitempty"`
}

// LoadSample is part of an [Observation] at a time.
type LoadSample struct {
	At   time.Time `json:"at"`
	Load float64   `json:"load"`
	Lag  float64   `json:"lag,omitempty"`
}

const (
	shortSlope, longSlope = time.Minute, 5 * time.Minute
	// sampleEvery is the minimum time between two samples, and mostSamples their maximum number.
	sampleEvery = 10 * time.Second
	mostSamples = int(2*longSlope/sampleEvery) + 1
)

// Upper bounds of features, and of what they are computed from. Larger values are clipped.
const (
	mostShare      = 4
	mostLatency    = 10
	mostSkew       = 10
	mostIntervals  = 60
	mostOfOneThing = 1e12
)

// Observe returns the state, and records what the next one needs. It may be called twice for the same moment.
//
// A slope is 0 until there is a sample old enough for it, and after a gap, when the last such sample is more than twice
// as old.
func (h *LoadHistory) Observe(o Observation) qmodel.State {
	now := LoadSample{o.Now, between(o.Load, 0, mostOfOneThing), between(o.Lag, 0, mostOfOneThing)}
	h.forget(o.Now)
	ready, count := float64(max(o.Ready, 1)), float64(max(o.Count, 1))
	share := func(of float64) float64 { return between(of/ready, -mostShare, mostShare) }
	long, longAge := h.before(o, longSlope)
	short, shortAge := h.before(o, shortSlope)
	s := qmodel.State{
		qmodel.Load:        share(now.Load),
		qmodel.LoadSlope1m: share(over(now.Load-short.Load, shortAge.Minutes())),
		qmodel.LoadSlope5m: share(over(now.Load-long.Load, longAge.Minutes())),
		qmodel.CPU:         between(o.CPU, 0, mostShare),
		qmodel.LagGrowth:   share(over(now.Lag-short.Lag, shortAge.Seconds())),
		qmodel.P99:         between(o.P99, 0, mostLatency),
		qmodel.Count:       between(float64(o.Count)/float64(max(o.Max, 1)), 0, 1),
		qmodel.Ready:       between(float64(o.Ready)/count, 0, 1),
		qmodel.Starting:    flag(o.Ready < o.Count),
		qmodel.Reassigning: flag(o.Reassigning),
		qmodel.SinceChange: mostIntervals,
		qmodel.Skew:        between(o.Skew, 0, mostSkew),
	}
	if !o.LastChange.IsZero() {
		s[qmodel.SinceChange] = between(o.Now.Sub(o.LastChange).Seconds()/max(o.Every.Seconds(), 1), 0, mostIntervals)
	}
	h.remember(now)
	return s
}

// forget drops samples from the future, as a clock may be set back.
func (h *LoadHistory) forget(now time.Time) {
	h.Samples = slices.DeleteFunc(h.Samples, func(s LoadSample) bool { return s.At.After(now) })
}

// before returns the newest sample that is at least as old as a window, and its age; 0 if there is no suitable one.
func (h *LoadHistory) before(o Observation, window time.Duration) (LoadSample, time.Duration) {
	for _, s := range slices.Backward(h.Samples) {
		if age := o.Now.Sub(s.At); age >= window {
			if age > 2*max(window, o.Every) {
				break
			}
			return s, age
		}
	}
	return LoadSample{}, 0
}

// remember adds a sample, and drops those that no slope needs any more.
func (h *LoadHistory) remember(now LoadSample) {
	if n := len(h.Samples); n > 0 && now.At.Sub(h.Samples[n-1].At) < sampleEvery {
		return
	}
	needed := 0
	for i, s := range h.Samples {
		if now.At.Sub(s.At) >= longSlope {
			needed = i
		}
	}
	h.Samples = append(slices.Delete(h.Samples, 0, max(needed, len(h.Samples)-mostSamples+1)), now)
}

// over divides a difference by the time that it took; 0 if that is 0.
func over(difference, time float64) float64 {
	if time == 0 {
		return 0
	}
	return difference / time
}

// between clips the value to the bounds; NaN counts as 0.
func between(value, least, most float64) float64 {
	if math.IsNaN(value) {
		return max(least, 0)
	}
	return min(max(value, least), most)
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
