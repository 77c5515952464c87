package domain

import "time"

// SweepProgress is how the runs of a sweep tell how far they have come, and how it is found by that how many of them
// side by side finish most.
type SweepProgress struct {
	// Pattern is that of a [ProgressSource].
	Pattern string `json:"pattern"`
	// Threshold is the least progress that one more run on a GPU or host has to bring, as a share of what a run brought
	// there so far; [DefaultRunGain] where it is nil.
	Threshold *float64 `json:"threshold,omitempty"`
	// Settle is how long it takes, at least, to measure a number of runs; [DefaultGainSettle] where it is nil.
	Settle *Duration `json:"settle,omitempty"`
}

// DefaultRunGain is the least progress that one more run has to bring.
const DefaultRunGain = 0.05

// The bounds of how long it takes to measure a number of runs.
const (
	MinRunSettle = time.Second
	MaxRunSettle = time.Hour
)

// Gain is the least progress that one more run has to bring, with the default filled in.
func (p SweepProgress) Gain() float64 {
	if p.Threshold != nil {
		return *p.Threshold
	}
	return DefaultRunGain
}

func (p SweepProgress) validate(ps *Problems, at Path, s Sweep) {
	ProgressSource{Pattern: p.Pattern}.validate(ps, at)
	if p.Threshold != nil {
		checkNumber(ps, at.At("threshold"), "Invalid threshold", *p.Threshold, 1)
	}
	checkDuration(ps, at.At("settle"), "Invalid duration", p.Settle, MinRunSettle, MaxRunSettle)
	if s.MaxParallel != nil && *s.MaxParallel == 1 {
		ps.Warn(at, "Progress not used", "max_parallel is 1, and progress decides how many more run beside one; omit one of them")
		ps.DecidedBy([]Path{at, {"max_parallel"}})
	}
}

// SweepParallelism is what was found out about how many runs of a sweep side by side finish most. Only the controller
// writes it.
//
// A place is a GPU where runs have GPUs, and else a host. All numbers of runs are those of the sweep on one place.
type SweepParallelism struct {
	Header
	Sweep string `json:"sweep"`
	// ID is the sweep's, and Of identifies what its runs were when this was measured: of others it tells nothing.
	ID string `json:"id"`
	Of string `json:"of"`
	// Level is how many runs a place takes. It is the best known once it has settled, and else the one that is tried.
	Level   int  `json:"level"`
	Settled bool `json:"settled,omitempty"`
	// Best is the best number that was measured, 0 before the first, and Over the least above it that was found to
	// bring too little, 0 for none.
	Best int `json:"best,omitempty"`
	Over int `json:"over,omitempty"`
	// Throughput is how many steps a second all runs of a place make together, by their number, as if all of them were
	// those that were measured first.
	Throughput map[int]float64 `json:"throughput,omitempty"`
	// Rates are the steps a second of each run that was measured while Base of them were on a place, by key.
	Base  int                `json:"base,omitempty"`
	Rates map[string]float64 `json:"rates,omitempty"`
	// Unknown says why nothing can be measured, "" while that may be: then as many run as there is room for.
	Unknown string `json:"unknown,omitempty"`
}

// SweepParallelismKind is that of what was found out about the parallelism of sweeps.
var SweepParallelismKind = Kind{Name: "sweep-parallelism", Noun: "parallelism of sweep"}

// Kind returns [SweepParallelismKind].
func (*SweepParallelism) Kind() Kind { return SweepParallelismKind }

// Key returns the sweep's name.
func (p *SweepParallelism) Key() string { return p.Sweep }
