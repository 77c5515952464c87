package main

import "math"

// histogram counts latencies in buckets with bounds 2 % apart, from a microsecond to about ten minutes.
type histogram struct {
	counts [buckets]uint64
	total  uint64
}

const (
	buckets = 1024
	// growth is the ratio of the bounds of adjacent buckets.
	growth = 1.02
)

// add counts a latency in milliseconds.
func (h *histogram) add(ms float64) {
	bucket := 0
	if us := ms * 1000; us > 1 {
		bucket = min(int(math.Ceil(math.Log(us)/math.Log(growth))), buckets-1)
	}
	h.counts[bucket]++
	h.total++
}

// merge adds the counts of another histogram.
func (h *histogram) merge(other *histogram) {
	for i, c := range other.counts {
		h.counts[i] += c
	}
	h.total += other.total
}

// quantile returns a bound, in milliseconds, that this share of the latencies does not exceed; 0 if there are none.
func (h *histogram) quantile(share float64) float64 {
	if h.total == 0 {
		return 0
	}
	rank, seen := uint64(math.Ceil(share*float64(h.total))), uint64(0)
	for i, c := range h.counts {
		if seen += c; seen >= max(rank, 1) {
			return math.Round(math.Pow(growth, float64(i))) / 1000
		}
	}
	return math.Round(math.Pow(growth, buckets-1)) / 1000
}
