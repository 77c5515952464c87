package autoscale

import (
	"math"
	"slices"
)

// riskForecast is one way to forecast a load, with what is known of its errors.
//
// Errors are assumed to be as large as in the last hours, and to grow with the square root of the load, like those of
// independent arrivals (square-root staffing: Halfin and Whitt, Heavy-traffic limits for queues with many exponential
// servers, Operations Research 29, 1981). Their distribution beyond that is remembered for a week, in bins.
type riskForecast struct {
	// Level is the forecast.
	Level float64 `json:"level"`
	// Scale is the mean error at a load of 1, and Usual the mean of all errors, over a longer time.
	Scale       float64 `json:"scale"`
	ScaleWeight float64 `json:"scale_weight"`
	Usual       float64 `json:"usual"`
	// Loss is the mean pinball loss.
	Loss       float64 `json:"loss"`
	LossWeight float64 `json:"loss_weight"`
	// Bins are the fractions of scaled errors between each of riskEdges and the one before, and above all of them. They
	// add up to 1.
	Bins []float32 `json:"bins"`
}

// Time constants for learning errors, in seconds.
const (
	scaleMemory = 8 * 3600
	usualMemory = 2 * 86400
	lossMemory  = 2 * 86400
	binsMemory  = 7 * 86400
	// firstErrors is the assumed size of errors at first, as a fraction of the load, and firstWeight for how many
	// seconds that counts.
	firstErrors, firstWeight = 0.25, 50 * 60
	// leastError is the smallest size of errors, in members, as no forecast is better than that.
	leastError = 1e-3
	// leastScaled is the smallest load that errors are scaled by.
	leastScaled = 1e-2
)

// The bins are narrow near 0. Those below reach to 3 times the mean error, those above to 36 times.
const (
	binsBelow, binsAbove = 8, 24
	innermost            = 0.1
	widerBelow           = 0.5
	widerAbove           = 0.25
)

var riskEdges = func() (edges [binsBelow + binsAbove]float64) {
	for i := range binsBelow {
		edges[i] = -innermost * math.Exp(widerBelow*float64(binsBelow-1-i))
	}
	for i := range binsAbove {
		edges[binsBelow+i] = innermost * math.Exp(widerAbove*float64(i))
	}
	return edges
}()

// riskBin returns the bin of a scaled error.
func riskBin(scaled float64) int {
	bin, _ := slices.BinarySearch(riskEdges[:], scaled)
	return bin
}

func newRiskForecast(load float64) riskForecast {
	usual := max(firstErrors*load, leastError)
	f := riskForecast{
		Level: load, Scale: usual / riskScale(load), Usual: usual, Bins: make([]float32, len(riskEdges)+1),
	}
	above := 1.0
	for i := range f.Bins {
		next := 0.0
		if i < len(riskEdges) {
			next = 0.5 * math.Exp(-math.Abs(riskEdges[i]))
			if riskEdges[i] < 0 {
				next = 1 - next
			}
		}
		f.Bins[i] = float32(above - next)
		above = next
	}
	return f
}

func riskScale(load float64) float64 { return math.Sqrt(max(load, leastScaled)) }

// error returns the mean size of errors at a level.
func (f *riskForecast) error(level float64) float64 { return max(f.Scale*riskScale(level), leastError) }

// compare learns from a forecast level and the actual load, weighted by some seconds.
func (f *riskForecast) compare(level, load, seconds, share, price float64) {
	scale := f.error(level)
	// The pinball loss of the quantile that it would have chosen.
	loss := load - level - scale*f.quantile(price/scale)
	if loss *= 1 - share; loss < 0 {
		loss *= -share / (1 - share)
	}
	averaged(&f.Loss, &f.LossWeight, math.Exp(-seconds/lossMemory), loss)

	bin, weight := riskBin((load-level)/scale), float32(-math.Expm1(-seconds/binsMemory))
	for i := range f.Bins {
		f.Bins[i] -= weight * f.Bins[i]
	}
	f.Bins[bin] += weight

	size := math.Abs(load - level)
	averaged(&f.Scale, &f.ScaleWeight, math.Exp(-seconds/scaleMemory), size/riskScale(level))
	f.Usual = max(f.Usual-math.Expm1(-seconds/usualMemory)*(f.error(level)-f.Usual), leastError)
}

// averaged updates a mean with a value, which counts the more the less there was before.
func averaged(mean, weight *float64, kept, value float64) {
	*weight = *weight*kept + 1 - kept
	*mean += (1 - kept) / *weight * (value - *mean)
}

// quantile returns the scaled error that is cheapest to cover at a scaled price.
func (f *riskForecast) quantile(price float64) float64 {
	best, least, above := 0.0, math.Inf(1), 1.0
	for i, edge := range riskEdges {
		if edge > least {
			break
		}
		above -= float64(f.Bins[i])
		if cost := edge + price*max(above, 0); cost < least {
			best, least = edge, cost
		}
	}
	return best
}

// cost returns the cost of a count at a price: its members, and the chance that they are too few.
func (f *riskForecast) cost(count int, price float64) float64 {
	return float64(count) + price*f.above((float64(count)-f.Level)/f.error(f.Level))
}

// above returns the chance of a larger scaled error.
func (f *riskForecast) above(scaled float64) float64 {
	bin, above := riskBin(scaled), 1.0
	if bin == 0 {
		return 1
	}
	for _, share := range f.Bins[:bin] {
		above -= float64(share)
	}
	if bin < len(riskEdges) {
		lower, upper := riskEdges[bin-1], riskEdges[bin]
		above -= float64(f.Bins[bin]) * (scaled - lower) / (upper - lower)
		return max(above, 0)
	}
	// Beyond all observed errors, the chance falls with the square of the distance.
	nearer := riskEdges[bin-1] / scaled
	return max(above, 0) * nearer * nearer
}

// cheapest returns the count with the lowest cost at a price.
func (f *riskForecast) cheapest(price float64) int {
	best, least, last := 0, math.Inf(1), -1
	scale := f.error(f.Level)
	for _, edge := range riskEdges {
		count := wholeMembers(f.Level + scale*edge)
		for _, count := range [...]int{count - 1, count} {
			if count <= last {
				continue
			}
			if last = count; float64(count) > least {
				return best
			}
			if cost := f.cost(count, price); cost < least {
				best, least = count, cost
			}
		}
	}
	return best
}

func (f riskForecast) sound() bool {
	within := func(value, most float64) bool { return value >= 0 && value <= most }
	return within(f.Level, mostLoad) && within(f.Scale, largest) && within(f.ScaleWeight, 1) &&
		within(f.Usual, largest) &&
		within(f.Loss, largest) && within(f.LossWeight, 1) && len(f.Bins) == len(riskEdges)+1 &&
		!slices.ContainsFunc(f.Bins, func(share float32) bool { return !within(float64(share), 2) })
}
