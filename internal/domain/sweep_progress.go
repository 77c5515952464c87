package domain

import "time"

// SweepProgress is how the progress of a sweep's runs is measured, to find out how many side by side give the highest
// throughput.
type SweepProgress struct {
	// Pattern is that of a [ProgressSource].
	Pattern string `json:"pattern"`
	// Threshold is the minimum gain in progress from one more run on a GPU or host, as a fraction of the progress per
	// run there so far; nil means [DefaultRunGain].
	Threshold *float64 `json:"threshold,omitempty"`
	// Settle is the minimum time to measure a number of runs; nil means [DefaultGainSettle].
	Settle *Duration `json:"settle,omitempty"`
}

// DefaultRunGain is the default minimum gain from one more run.
const DefaultRunGain = 0.05

// Bounds for the time it takes to measure a number of runs.
const (
	MinRunSettle = time.Second
	MaxRunSettle = time.Hour
)

// Gain returns the minimum gain from one more run, with the default filled in.
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
		ps.Warn(at, "Progress not used",
			"max_parallel is 1, but progress decides how many more run beside the first; omit one of them")
		ps.DecidedBy([]Path{at, {"max_parallel"}})
	}
}

// SweepParallelism is what was found out about how many runs of a sweep side by side give the highest throughput. Only
// the controller writes it.
//
// A place is a GPU if runs use GPUs, and a host otherwise. All numbers of runs are those of the sweep on one place.
type SweepParallelism struct {
	Header
	Sweep string `json:"sweep"`
	// ID is the sweep's. Of identifies what its runs were when this was measured; it says nothing about other runs.
	ID string `json:"id"`
	Of string `json:"of"`
	// Level is how many runs a place takes: the best known number once it has settled, and the one being tried until
	// then.
	Level   int  `json:"level"`
	Settled bool `json:"settled,omitempty"`
	// Best is the best number measured; 0 before the first. Over is the smallest number above it that was found to gain
	// too little; 0 if none.
	Best int `json:"best,omitempty"`
	Over int `json:"over,omitempty"`
	// Throughput is the total steps per second of a place by number of runs, normalised to the runs that were measured
	// first.
	Throughput map[int]float64 `json:"throughput,omitempty"`
	// Rates are the steps per second of each run, by key, measured while Base runs were on a place.
	Base  int                `json:"base,omitempty"`
	Rates map[string]float64 `json:"rates,omitempty"`
	// Unknown says why nothing can be measured; "" if measuring is possible. While it is set, as many run as there is
	// room for.
	Unknown string `json:"unknown,omitempty"`
}

// SweepParallelismKind is the kind of [SweepParallelism].
var SweepParallelismKind = Kind{Name: "sweep-parallelism", Noun: "parallelism of sweep"}

// Kind returns [SweepParallelismKind].
func (*SweepParallelism) Kind() Kind { return SweepParallelismKind }

// Key returns the sweep's name.
func (p *SweepParallelism) Key() string { return p.Sweep }
