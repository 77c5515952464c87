package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// demand is the wanted rate in records per second, as a function of the time since the start.
type demand struct {
	shape      string
	base, peak float64
	period     time.Duration
	seed       uint64
}

// shapes has functions, by name, that return where between base (0) and peak (1) the demand is, given the position in a
// period (0 to 1) and the period's number.
var shapes = map[string]func(part float64, period uint64, seed uint64) float64{
	"constant": func(float64, uint64, uint64) float64 { return 0 },
	"ramp": func(part float64, period, _ uint64) float64 {
		if period > 0 {
			return 1
		}
		return part
	},
	"steps": func(part float64, _, _ uint64) float64 { return math.Floor(2 * part) },
	"day":   func(part float64, _, _ uint64) float64 { return (1 - math.Cos(2*math.Pi*part)) / 2 },
	"spike": func(part float64, period, seed uint64) float64 {
		// A spike takes a tenth of each period, and starts at random.
		begin := 0.9 * rand.New(rand.NewPCG(seed, period)).Float64() //nolint:gosec // not a secret
		if part >= begin && part < begin+0.1 {
			return 1
		}
		return 0
	},
}

// most is the maximum demand, in records per second.
const most = 1_000_000

func (d demand) check() error {
	switch {
	case shapes[d.shape] == nil:
		names := make([]string, 0, len(shapes))
		for name := range shapes {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("unknown -shape %q; use one of %s", d.shape, strings.Join(names, ", "))
	case !(d.base >= 0 && d.base <= most):
		return fmt.Errorf("-base must be 0 to %d records a second, got %v", most, d.base)
	case !(d.peak >= d.base && d.peak <= most) && d.shape != "constant":
		return fmt.Errorf("-peak must be %v, the base, to %d records a second, got %v", d.base, most, d.peak)
	case d.period < time.Second:
		return fmt.Errorf("-period must be at least 1s, got %s", d.period)
	}
	return nil
}

// at returns the demand at a time since the start; 0 before it.
func (d demand) at(since time.Duration) float64 {
	if since < 0 {
		return 0
	}
	part := float64(since%d.period) / float64(d.period)
	share := shapes[d.shape](part, uint64(since/d.period), d.seed) //nolint:gosec // not negative
	return d.base + (d.peak-d.base)*share
}
