package domain

import (
	"math"
	"slices"
)

// Measure is what was measured of one quantity over a window of time. What is not known is nil.
type Measure struct {
	// Last is the latest value; nil where that is not known, though earlier ones are.
	Last *float64 `json:"last,omitempty"`
	// Mean, Max and P95 are the mean, the largest value, and the one that 95 % of the values do not exceed.
	Mean *float64 `json:"mean,omitempty"`
	Max  *float64 `json:"max,omitempty"`
	P95  *float64 `json:"p95,omitempty"`
}

// percentile is the part of the values that P95 is not exceeded by.
const percentile = 0.95

// MeasureOf returns the measure of values in the order of time. Those that are NaN were not known.
// P95 is by the nearest rank, and so one of the values.
func MeasureOf(values []float64) Measure {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(known) == 0 {
		return Measure{}
	}
	sum := 0.0
	for _, v := range known {
		sum += v
	}
	slices.Sort(known)
	mean, most := sum/float64(len(known)), known[len(known)-1]
	p95 := known[int(math.Ceil(percentile*float64(len(known))))-1]
	m := Measure{Mean: &mean, Max: &most, P95: &p95}
	if last := values[len(values)-1]; !math.IsNaN(last) {
		m.Last = &last
	}
	return m
}

// Instant returns the measure of a single value; nil is not known.
func Instant(value *float64) Measure {
	return Measure{Last: value, Mean: value, Max: value, P95: value}
}
