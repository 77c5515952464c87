package domain

import (
	"math"
	"slices"
)

// Measure summarises one quantity over a window of time. Unknown values are nil.
type Measure struct {
	// Last is the latest value; nil if it is unknown, even if earlier ones are known.
	Last *float64 `json:"last,omitempty"`
	// P95 is the value that 95 % of the values do not exceed.
	Mean *float64 `json:"mean,omitempty"`
	Max  *float64 `json:"max,omitempty"`
	P95  *float64 `json:"p95,omitempty"`
}

// percentile is the fraction of values that do not exceed P95.
const percentile = 0.95

// MeasureOf summarises values in chronological order, where NaN means unknown. P95 uses the nearest rank, so it is one
// of the values.
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

// Instant returns the measure of a single value; nil means unknown.
func Instant(value *float64) Measure {
	return Measure{Last: value, Mean: value, Max: value, P95: value}
}
