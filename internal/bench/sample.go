//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"
)

// sample holds the durations of one thing over several runs.
type sample []time.Duration

// median returns the middle duration, or the mean of the two in the middle.
func (s sample) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// p95 returns the smallest duration that 95 % of the sample don't exceed.
func (s sample) p95() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(95*len(sorted)+99)/100-1]
}

// minus returns, run by run, how much longer s took than the other sample.
func (s sample) minus(other sample) sample {
	difference := make(sample, len(s))
	for i := range s {
		difference[i] = s[i] - other[i]
	}
	return difference
}

// ratio returns the factor by which s took longer than the other sample.
func (s sample) ratio(other sample) float64 {
	return s.median().Seconds() / other.median().Seconds()
}

// seconds formats a sample as "median (least – most)".
func (s sample) seconds() string {
	return fmt.Sprintf("%.2f s (%.2f – %.2f)", s.median().Seconds(), slices.Min(s).Seconds(), slices.Max(s).Seconds())
}

// milliseconds formats a sample as "median (least – most)".
func (s sample) milliseconds() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("%.0f ms (%.0f – %.0f)", ms(s.median()), ms(slices.Min(s)), ms(slices.Max(s)))
}
