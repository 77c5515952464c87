package domain

import (
	"cmp"
	"slices"
	"time"
)

// VerticalScaling moves what a member of the role requests, between bounds, by what members use: as the Vertical Pod
// Autoscaler of Kubernetes does.
type VerticalScaling struct {
	// CPUs and MemoryMiB are the bounds of each, which is left alone where they are nil. One of them there has to be.
	CPUs      *AmountBounds `json:"cpus,omitempty"`
	MemoryMiB *AmountBounds `json:"memory_mib,omitempty"`
	// Percentile is the part of the time, in percent, in which a member uses no more than what is recommended;
	// DefaultVerticalPercentile where it is nil.
	Percentile *float64 `json:"percentile,omitempty"`
	// MarginPercent is how much more than that is recommended, in percent; DefaultVerticalMargin where it is nil.
	MarginPercent *float64 `json:"margin_percent,omitempty"`
	// LearnFor is how long members have to have been measured before anything is applied; DefaultLearnFor where it is
	// nil.
	LearnFor *Duration `json:"learn_for,omitempty"`
	// Apply is ApplyNever where it is empty.
	Apply VerticalApply `json:"apply,omitempty"`
}

// AmountBounds bound an amount of a resource, both included.
type AmountBounds struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// VerticalApply says when members get what is recommended.
type VerticalApply string

// When members may get what is recommended.
const (
	// ApplyNever leaves it at the recommendation.
	ApplyNever VerticalApply = "recommend"
	// ApplyAtStart has members that are started request it, and restarts none for it.
	ApplyAtStart VerticalApply = "restart"
	// ApplyInPlace has members that run have it, too, as far as that is possible without restarting them: another limit
	// of processors, and a higher one of memory.
	ApplyInPlace VerticalApply = "in_place"
)

// VerticalApplies lists what a policy may name.
var VerticalApplies = []VerticalApply{ApplyNever, ApplyAtStart, ApplyInPlace}

// The defaults of vertical scaling: those of Kubernetes, and a day that has been seen as a whole.
const (
	DefaultVerticalPercentile = 90
	DefaultVerticalMargin     = 15
	DefaultLearnFor           = 24 * time.Hour
)

// The bounds of what vertical scaling may be told.
const (
	MaxVerticalMargin = 1000
	MaxLearnFor       = 30 * 24 * time.Hour
	minMemoryMiB      = 1
)

// Share is the part of the time in which a member uses no more than what is recommended, from 0 to 1, with the default
// filled in.
func (v VerticalScaling) Share() float64 {
	if v.Percentile != nil {
		return *v.Percentile / 100
	}
	return DefaultVerticalPercentile / 100.
}

// Margin is by what the amount that is used is multiplied, with the default filled in.
func (v VerticalScaling) Margin() float64 {
	if v.MarginPercent != nil {
		return 1 + *v.MarginPercent/100
	}
	return 1 + DefaultVerticalMargin/100.
}

// Learns is how long members have to have been measured before anything is applied, with the default filled in.
func (v VerticalScaling) Learns() time.Duration { return v.LearnFor.Or(DefaultLearnFor) }

// ApplyRule is when members get what is recommended, with the default filled in.
func (v VerticalScaling) ApplyRule() VerticalApply { return cmp.Or(v.Apply, ApplyNever) }

func (v VerticalScaling) validate(ps *Problems, at Path) {
	if v.CPUs == nil && v.MemoryMiB == nil {
		ps.Add(at, "Nothing to scale", "neither cpus nor memory_mib is given; give the bounds of one of them at least, such as cpus = { min = 0.5, max = 8 }")
		ps.DecidedBy([]Path{at.At("cpus"), at.At("memory_mib")})
	}
	v.CPUs.validate(ps, at.At("cpus"), minCPUs)
	v.MemoryMiB.validate(ps, at.At("memory_mib"), minMemoryMiB)
	if v.Percentile != nil && !(*v.Percentile > 0 && *v.Percentile <= 100) {
		ps.Add(at.At("percentile"), "Invalid percentile", "%s is not allowed here; more than 0, and 100 at most, is", number(*v.Percentile))
	}
	if v.MarginPercent != nil {
		checkNumber(ps, at.At("margin_percent"), "Invalid margin", *v.MarginPercent, MaxVerticalMargin)
	}
	checkDuration(ps, at.At("learn_for"), "Invalid time", v.LearnFor, 0, MaxLearnFor)
	if v.Apply != "" && !slices.Contains(VerticalApplies, v.Apply) {
		ps.Add(at.At("apply"), "Unknown rule", "%q does not say when members get what is recommended; there are %q", v.Apply, VerticalApplies)
	}
}

// validate checks bounds, which may be nil, against the least amount that there can be.
func (b *AmountBounds) validate(ps *Problems, at Path, least float64) {
	switch {
	case b == nil:
	case !(b.Min >= least && b.Min <= maxAmount):
		ps.Add(at.At("min"), "Invalid amount", "min is %s; %s to %s is allowed", number(b.Min), number(least), number(maxAmount))
	case !(b.Max >= b.Min && b.Max <= maxAmount):
		ps.Add(at.At("max"), "Invalid amount", "max is %s; %s, which is min, to %s is allowed", number(b.Max), number(b.Min), number(maxAmount))
		ps.DecidedBy([]Path{at.At("min"), at.At("max")})
	}
}

// maxAmount bounds amounts, so that nothing computed of them overflows: it is far beyond what any host has.
const maxAmount = 1e9
