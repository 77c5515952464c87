package autoscale

import "math"

// histogram holds weights of values, in buckets that each grow by bucketGrowth, as in Kubernetes' Vertical Pod
// Autoscaler (pkg/recommender/util/histogram_options.go): a percentile is too large by at most that factor. It is some
// 2 KB of JSON.
type histogram struct {
	// First is the number of the first bucket with a weight, and Weights are those from there on.
	First   int       `json:"first,omitempty"`
	Weights []float32 `json:"weights,omitempty"`
}

const (
	bucketGrowth = 1.05
	// buckets is the number of buckets. The last one begins at some 300,000 times the size of the first.
	buckets = 200
	// negligible is the fraction of the total weight below which buckets at either end are dropped.
	negligible = 1e-5
	// mostWeight bounds the weight of a bucket, far beyond any real role's.
	mostWeight = 1e15
)

// bucketOf returns the number of the bucket for a value. The first bucket holds the values up to least.
func bucketOf(value, least float64) int {
	at := math.Floor(math.Log(value/least*(bucketGrowth-1)+1) / math.Log(bucketGrowth))
	return int(min(max(at, 0), buckets-1))
}

// bucketEnd returns the largest value of a bucket.
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

// decay multiplies all weights by part, and drops negligible ones at both ends.
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

// percentile returns the first bucket up to which there is this share of the total weight, from 0 to 1; false if the
// histogram is empty.
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

// sound reports whether the histogram could result from adding and decaying.
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
