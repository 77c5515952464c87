package domain

import (
	"cmp"
	"slices"
	"time"
)

// VerticalScaling adjusts what each member of the role requests, within bounds, to what members use, like Kubernetes'
// Vertical Pod Autoscaler.
type VerticalScaling struct {
	// CPUs and MemoryMiB are the bounds of each resource. nil leaves that resource alone; at least one must be set.
	CPUs      *AmountBounds `json:"cpus,omitempty"`
	MemoryMiB *AmountBounds `json:"memory_mib,omitempty"`
	// Percentile is the percentage of time in which a member uses no more than the recommendation; nil means
	// DefaultVerticalPercentile.
	Percentile *float64 `json:"percentile,omitempty"`
	// MarginPercent is added to that usage for the recommendation, in percent; nil means DefaultVerticalMargin.
	MarginPercent *float64 `json:"margin_percent,omitempty"`
	// LearnFor is how long members must have been measured before anything is applied; nil means DefaultLearnFor.
	LearnFor *Duration `json:"learn_for,omitempty"`
	// Apply defaults to ApplyNever.
	Apply VerticalApply `json:"apply,omitempty"`
}

// AmountBounds bounds an amount of a resource, inclusive.
type AmountBounds struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// VerticalApply says when members get the recommended size.
type VerticalApply string

// When members can get the recommended size.
const (
	// ApplyNever only recommends.
	ApplyNever VerticalApply = "recommend"
	// ApplyAtStart applies it to members as they start, and restarts none for it.
	ApplyAtStart VerticalApply = "restart"
	// ApplyInPlace also applies it to running members as far as possible without a restart: any CPU limit, and a higher
	// memory limit.
	ApplyInPlace VerticalApply = "in_place"
)

// VerticalApplies lists the valid values.
var VerticalApplies = []VerticalApply{ApplyNever, ApplyAtStart, ApplyInPlace}

// Defaults of vertical scaling: percentile and margin as in Kubernetes, and one full day of measurements.
const (
	DefaultVerticalPercentile = 90
	DefaultVerticalMargin     = 15
	DefaultLearnFor           = 24 * time.Hour
)

// Bounds for vertical scaling.
const (
	MaxVerticalMargin = 1000
	MaxLearnFor       = 30 * 24 * time.Hour
	minMemoryMiB      = 1
)

// Share returns Percentile as a fraction from 0 to 1, with the default filled in.
func (v VerticalScaling) Share() float64 {
	if v.Percentile != nil {
		return *v.Percentile / 100
	}
	return DefaultVerticalPercentile / 100.
}

// Margin returns the factor by which the measured usage is multiplied, with the default filled in.
func (v VerticalScaling) Margin() float64 {
	if v.MarginPercent != nil {
		return 1 + *v.MarginPercent/100
	}
	return 1 + DefaultVerticalMargin/100.
}

// Learns returns how long members must have been measured before anything is applied, with the default filled in.
func (v VerticalScaling) Learns() time.Duration { return v.LearnFor.Or(DefaultLearnFor) }

// ApplyRule returns Apply with the default filled in.
func (v VerticalScaling) ApplyRule() VerticalApply { return cmp.Or(v.Apply, ApplyNever) }

func (v VerticalScaling) validate(ps *Problems, at Path) {
	if v.CPUs == nil && v.MemoryMiB == nil {
		ps.Add(at, "Nothing to scale",
			"set the bounds of cpus, memory_mib or both, such as cpus = { min = 0.5, max = 8 }")
		ps.DecidedBy([]Path{at.At("cpus"), at.At("memory_mib")})
	}
	v.CPUs.validate(ps, at.At("cpus"), minCPUs)
	v.MemoryMiB.validate(ps, at.At("memory_mib"), minMemoryMiB)
	if v.Percentile != nil && !(*v.Percentile > 0 && *v.Percentile <= 100) {
		ps.Add(at.At("percentile"), "Invalid percentile", "must be above 0 and at most 100, got %s",
			number(*v.Percentile))
	}
	if v.MarginPercent != nil {
		checkNumber(ps, at.At("margin_percent"), "Invalid margin", *v.MarginPercent, MaxVerticalMargin)
	}
	checkDuration(ps, at.At("learn_for"), "Invalid time", v.LearnFor, 0, MaxLearnFor)
	if v.Apply != "" && !slices.Contains(VerticalApplies, v.Apply) {
		ps.Add(at.At("apply"), "Unknown rule", "unknown rule %q; use one of %q", v.Apply, VerticalApplies)
	}
}

// validate checks bounds, which may be nil. least is the smallest valid amount.
func (b *AmountBounds) validate(ps *Problems, at Path, least float64) {
	switch {
	case b == nil:
	case !(b.Min >= least && b.Min <= maxAmount):
		ps.Add(at.At("min"), "Invalid amount", "must be between %s and %s, got %s", number(least), number(maxAmount),
			number(b.Min))
	case !(b.Max >= b.Min && b.Max <= maxAmount):
		ps.Add(at.At("max"), "Invalid amount", "must be between %s (min) and %s, got %s", number(b.Min),
			number(maxAmount), number(b.Max))
		ps.DecidedBy([]Path{at.At("min"), at.At("max")})
	}
}

// maxAmount bounds amounts so that nothing computed from them overflows. It is far beyond any host.
const maxAmount = 1e9
