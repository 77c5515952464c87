package autoscale

import "math"

// histogram is how much weight values have, in buckets that grow by bucketGrowth each, as those of Kubernetes' Vertical
// Pod Autoscaler (pkg/recommender/util/histogram_options.go) do: a percentile of it is at most that much too large. It
// is some 2 KB of JSON.
type histogram struct {
	// First is the number of the first bucket that has a weight, and Weights are those from there on.
	First   int       `json:"first,omitempty"`
	Weights []float32 `json:"weights,omitempty"`
}

const (
	bucketGrowth = 1.05
	// buckets is their number: the last one begins at some 300,000 times the size of the first.
	buckets = 200
	// negligible is the part of all weight below which that of a bucket at either end is forgotten.
	negligible = 1e-5
	// mostWeight bounds the weight of a bucket: no role of any size comes to that.
	mostWeight = 1e15
)

// bucketOf returns the number of the bucket that has a value, where the first one has the values up to least.
func bucketOf(value, least float64) int {
	at := math.Floor(math.Log(value/least*(bucketGrowth-1)+1) / math.Log(bucketGrowth))
	return int(min(max(at, 0), buckets-1))
}

// bucketEnd is the largest value of a bucket.
func bucketEnd(bucket int, least float64) float64 {
	return least * (math.Pow(bucketGrowth, float64(bucket+1)) - 1) / (bucketGrowth - 1)
}

// add adds to the weight of a bucket.
func (h *histogram) add(bucket int, weight float64) {
	if len(h.Weights) == 0 {
		h.First = bucket
	}
	if before := h.First - bucket; before > 0 {
		h.Weights = append(make([]float32, before), h.Weights...)
		h.First = bucket
	}
	if missing := bucket - h.First + 1 - len(h.Weights); missing > 0 {
		h.Weights = append(h.Weights, make([]float32, missing)...)
	}
	w := &h.Weights[bucket-h.First]
	*w = float32(min(float64(*w)+weight, mostWeight))
}

// decay has all weights be a part of what they were, and forgets at both ends what is of no account any more.
func (h *histogram) decay(part float64) {
	for i := range h.Weights {
		h.Weights[i] = float32(float64(h.Weights[i]) * part)
	}
	least := float32(h.total() * negligible)
	for len(h.Weights) > 0 && h.Weights[0] <= least {
		h.Weights, h.First = h.Weights[1:], h.First+1
	}
	for len(h.Weights) > 0 && h.Weights[len(h.Weights)-1] <= least {
		h.Weights = h.Weights[:len(h.Weights)-1]
	}
	if len(h.Weights) == 0 {
		*h = histogram{}
	}
}

func (h *histogram) total() float64 {
	total := 0.0
	for _, w := range h.Weights {
		total += float64(w)
	}
	return total
}

// percentile returns the first bucket up to which there is a share of all weight, from 0 to 1, and false where there is
// none.
func (h *histogram) percentile(share float64) (bucket int, known bool) {
	total := h.total()
	if total <= 0 {
		return 0, false
	}
	sum := 0.0
	for i, w := range h.Weights {
		if sum += float64(w); sum >= share*total*(1-rounding) && w > 0 {
			return h.First + i, true
		}
	}
	return h.First + len(h.Weights) - 1, true
}

// sound reports whether it may have come of adding and decaying.
func (h *histogram) sound() bool {
	if h.First < 0 || h.First+len(h.Weights) > buckets {
		return false
	}
	for _, w := range h.Weights {
		if !(w >= 0 && w <= mostWeight) {
			return false
		}
	}
	return true
}
