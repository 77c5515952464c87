package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDemand(t *testing.T) {
	for shape, at := range map[string]map[time.Duration]float64{
		"constant": {0: 100, time.Hour: 100},
		"ramp":     {0: 100, 5 * time.Second: 200, 10 * time.Second: 300, time.Hour: 300},
		"steps":    {0: 100, 4 * time.Second: 100, 5 * time.Second: 300, 9 * time.Second: 300, 10 * time.Second: 100},
		"day":      {0: 100, 5 * time.Second: 300, 10 * time.Second: 100, 12500 * time.Millisecond: 200},
	} {
		t.Run(shape, func(t *testing.T) {
			d := demand{shape, 100, 300, 10 * time.Second, 1}
			if err := d.check(); err != nil || d.at(-1) != 0 {
				t.Errorf("%v, and %v before it begins", err, d.at(-1))
			}
			for since, want := range at {
				if got := d.at(since); math.Abs(got-want) > 1e-9 {
					t.Errorf("after %s, it is %v, want %v", since, got, want)
				}
			}
		})
	}
}

// TestSpike: each period has one spike of a tenth of it, elsewhere with another seed.
func TestSpike(t *testing.T) {
	peaks := func(seed uint64) (at []int) {
		d := demand{"spike", 1, 9, 1000 * time.Second, seed}
		for s := range 5000 {
			if d.at(time.Duration(s)*time.Second) == 9 {
				at = append(at, s)
			}
		}
		return at
	}
	first := peaks(1)
	if !slices.Equal(first, peaks(1)) || slices.Equal(first, peaks(2)) {
		t.Error("a seed does not stand for where spikes are")
	}
	for period := range 5 {
		count := 0
		for _, s := range first {
			if s/1000 == period {
				count++
			}
		}
		if count < 99 || count > 101 {
			t.Errorf("period %d has %d seconds at its peak", period, count)
		}
	}
}

func TestDemandProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := demand{
			rapid.SampledFrom([]string{"constant", "ramp", "steps", "day", "spike"}).Draw(t, "shape"), 10,
			rapid.Float64Range(10, most).Draw(t, "peak"),
			time.Duration(rapid.Int64Range(int64(time.Second), int64(24*time.Hour)).Draw(t, "period")),
			rapid.Uint64().Draw(t, "seed"),
		}
		if err := d.check(); err != nil {
			t.Fatal(err)
		}
		if got := d.at(time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "since"))); got < d.base ||
			got > d.peak {
			t.Fatalf("it is %v", got)
		}
	})
}

func TestDemandRefused(t *testing.T) {
	good := demand{"day", 1, 2, time.Hour, 1}
	for want, change := range map[string]func(*demand){
		`unknown -shape "flat"; use one of constant, day, ramp`:     func(d *demand) { d.shape = "flat" },
		"-base must be 0 to 1000000 records a second, got -1":       func(d *demand) { d.base = -1 },
		"-base must be 0 to 1000000 records a second, got NaN":      func(d *demand) { d.base = math.NaN() },
		"must be 1, the base, to 1000000 records a second, got 0.5": func(d *demand) { d.peak = 0.5 },
		"to 1000000 records a second, got +Inf":                     func(d *demand) { d.peak = math.Inf(1) },
		"-period must be at least 1s, got 1ms":                      func(d *demand) { d.period = time.Millisecond },
	} {
		d := good
		change(&d)
		if err := d.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
