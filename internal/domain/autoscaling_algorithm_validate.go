package domain

import (
	"math"
	"slices"
)

// validate checks that there is exactly one algorithm, and that it is valid.
func (a ScalingAlgorithm) validate(ps *Problems, at Path, role string) {
	var names []string
	for _, algorithm := range []struct {
		name  string
		given bool
	}{
		{"target", a.Target != nil}, {"heat", a.Heat != nil}, {"threshold", a.Threshold != nil},
		{"queue", a.Queue != nil}, {"marginal_gain", a.MarginalGain != nil}, {"ratio", a.Ratio != nil},
		{"external", a.External != nil}, {"risk", a.Risk != nil},
		{"idle_room", a.IdleRoom != nil}, {"learned", a.Learned != nil},
	} {
		if algorithm.given {
			names = append(names, algorithm.name)
		}
	}
	if len(names) > 1 {
		ps.Add(at, "Several algorithms",
			"a metric has only one algorithm, got %q; define a metric for each, of which the largest count is used",
			names)
	}
	if a.Target != nil {
		a.Target.validate(ps, at.At("target"))
	}
	if a.Heat != nil {
		a.Heat.validate(ps, at.At("heat"))
	}
	if a.Threshold != nil {
		a.Threshold.validate(ps, at.At("threshold"))
	}
	if a.Queue != nil {
		checkPositive(ps, at.At("queue", "per_member"), "Invalid share", a.Queue.PerMember)
		checkDuration(ps, at.At("queue", "cool_down"), "Invalid time", a.Queue.CoolDown, 0, math.MaxInt64)
	}
	if a.MarginalGain != nil {
		a.MarginalGain.validate(ps, at.At("marginal_gain"))
	}
	if a.Ratio != nil {
		a.Ratio.validate(ps, at.At("ratio"), role)
	}
	if a.External != nil {
		a.External.validate(ps, at.At("external"), MaxHookTimeout, shown)
	}
	if a.Risk != nil {
		a.Risk.validate(ps, at.At("risk"))
	}
	if a.Learned != nil {
		a.Learned.validate(ps, at.At("learned"))
	}
	if a.IdleRoom != nil && (a.IdleRoom.KeepFree < 0 || a.IdleRoom.KeepFree > MaxReplicas) {
		ps.Add(at.At("idle_room", "keep_free"), "Invalid number of members", "must be between 0 and %d, got %d",
			MaxReplicas, a.IdleRoom.KeepFree)
	}
}

func (a TargetAlgorithm) validate(ps *Problems, at Path) {
	checkPositive(ps, at.At("value"), "Invalid target", a.Value)
	validatePer(ps, at, a.Per)
}

func (a HeatAlgorithm) validate(ps *Problems, at Path) {
	checkThresholds(ps, at, &a.Lower, &a.Upper)
	checkPositive(ps, at.At("target"), "Invalid target", a.Target)
	if a.Lower < a.Upper && a.Target > 0 && (a.Target < a.Lower || a.Target > a.Upper) {
		ps.Add(at.At("target"), "Target beyond a threshold",
			"must be between %s (lower) and %s (upper), got %s: a count for that target would be changed again at once",

			number(a.Lower), number(a.Upper), number(a.Target))
	}
	if a.Recurrence < 0 {
		ps.Add(at.At("recurrence"), "Invalid recurrence", "must be 1 or more, got %d", a.Recurrence)
	}
}

func (a ThresholdAlgorithm) validate(ps *Problems, at Path) {
	if a.Lower == nil && a.Upper == nil {
		ps.Add(at, "No thresholds", "the algorithm needs lower, upper or both")
	}
	checkThresholds(ps, at, a.Lower, a.Upper)
	if a.Samples < 0 {
		ps.Add(at.At("samples"), "Invalid number of samples", "must be 1 or more, got %d", a.Samples)
	}
	for _, step := range []struct {
		name, needs string
		threshold   *float64
		count       int
		percent     float64
		most        float64
	}{
		{"step_out", "upper", a.Upper, a.StepOut, a.StepOutPercent, math.Inf(1)},
		{"step_in", "lower", a.Lower, a.StepIn, a.StepInPercent, 100},
	} {
		if step.count < 0 || step.count > MaxReplicas {
			ps.Add(at.At(step.name), "Invalid step", "must be between 1 and %d, got %d", MaxReplicas, step.count)
		}
		checkNumber(ps, at.At(step.name+"_percent"), "Invalid step", step.percent, step.most)
		if step.threshold == nil && (step.count != 0 || step.percent != 0) {
			ps.Add(at.At(step.name), "Step not used",
				"%s is set (%d, or %s %%), but has no effect without %s; set that, or leave the step out",
				step.name,
				step.count, number(step.percent), step.needs)
			ps.DecidedBy([]Path{at.At(step.name), at.At(step.name + "_percent"), at.At(step.needs)})
		}
	}
}

func (a MarginalGainAlgorithm) validate(ps *Problems, at Path) {
	checkNumber(ps, at.At("threshold"), "Invalid threshold", a.Threshold, 1)
	for _, wait := range []struct {
		name  string
		value *Duration
	}{{"settle", a.Settle}, {"retry_after", a.RetryAfter}} {
		if wait.value != nil && *wait.value <= 0 {
			ps.Add(at.At(wait.name), "Invalid time", "must be positive, got %s", *wait.value)
		}
	}
}

func (a RatioAlgorithm) validate(ps *Problems, at Path, role string) {
	CheckName(ps, at.At("role"), "role", a.Role)
	if a.Role != "" && a.Role == role {
		ps.Add(at.At("role"), "Own role", "%q is the role that the policy scales; use another role of its group",
			a.Role)
	}
	checkPositive(ps, at.At("per"), "Invalid ratio", a.Per)
}

// The range of RiskAlgorithm.Percent. A share below the minimum could not be told from chance within weeks.
const (
	MinRiskPercent = 0.1
	MaxRiskPercent = 50
)

func (a RiskAlgorithm) validate(ps *Problems, at Path) {
	if !(a.Percent >= MinRiskPercent && a.Percent <= MaxRiskPercent) {
		ps.Add(at.At("percent"), "Invalid risk", "must be between %g and %d percent of the time, such as 1, got %s",
			MinRiskPercent, MaxRiskPercent, number(a.Percent))
	}
	validatePer(ps, at, a.Per)
	validateCapacity(ps, at, a.Capacity, a.Per)
}

// validateCapacity checks how much of a metric one member can carry.
func validateCapacity(ps *Problems, at Path, capacity float64, per TargetPer) {
	switch {
	case capacity != 0:
		checkPositive(ps, at.At("capacity"), "Invalid capacity", capacity)
	case per == TargetTotal:
		ps.Add(at.At("capacity"), "Missing capacity",
			"per = %q requires capacity, how much of the metric one member can carry; set it to a number above 0",
			TargetTotal)
		ps.DecidedBy([]Path{at.At("capacity"), at.At("per")})
	}
}

// validatePer checks what a value is compared with.
func validatePer(ps *Problems, at Path, per TargetPer) {
	if per != "" && !slices.Contains(TargetPers, per) {
		ps.Add(at.At("per"), "Unknown value", "unknown value %q; use one of %q", per, TargetPers)
	}
}
