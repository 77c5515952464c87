package autoscale

import (
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// threshold adds members to a role once a metric has been above its upper threshold for some decisions in a row, and
// removes some once it has been below its lower one for as many. A value at a threshold is not beyond it. Each step
// restarts the count, as does a value in between.
//
// Steps are percentages of the count, rounded up, or numbers of members; the larger one if a policy gives both, and at
// least 1, so that a role can leave 0.
//
// It is what the threshold strategy of the Nomad Autoscaler does with two checks, delta or percentage, and
// within_bounds_trigger as the number of samples
// (https://developer.hashicorp.com/nomad/tools/autoscaling/plugins/strategy/threshold), except that these samples have
// to be in a row.
func threshold(a domain.ThresholdAlgorithm, m *Memory, in asking) proposal {
	value, samples := in.metric.Value, max(a.Samples, 1)
	switch {
	case !finite(value):
		return undecided(in, notANumber)
	case a.Upper != nil && value > *a.Upper:
		m.Above, m.Below = m.Above+1, 0
		count := min(in.count+step(in.count, a.StepOut, a.StepOutPercent), domain.MaxReplicas)
		return inRow(in, count, &m.Above, samples, beyond(value, " is above ", *a.Upper, m.Above, samples))
	case a.Lower != nil && value < *a.Lower:
		m.Above, m.Below = 0, m.Below+1
		count := max(in.count-step(in.count, a.StepIn, a.StepInPercent), 0)
		return inRow(in, count, &m.Below, samples, beyond(value, " is below ", *a.Lower, m.Below, samples))
	}
	m.Above, m.Below = 0, 0
	if a.Lower == nil {
		return proposal{abstains: true, why: say(value, " is not above ", *a.Upper)} // others may scale in
	}
	return proposal{count: in.count, why: say(value, " is within the thresholds")}
}

// inRow asks for a count, and starts again, if so many decisions in a row have found the metric beyond a threshold.
func inRow(in asking, count int, so *int, samples int, why string) proposal {
	if *so < samples {
		return proposal{count: in.count, pending: new(count), why: why}
	}
	*so = 0
	return proposal{count: count, why: why}
}

// step returns the number of members of one step.
func step(count, members int, percent float64) int {
	return max(members, wholeMembers(float64(count)*percent/100), 1)
}

// beyond describes a value beyond a limit, and for how many of the required decisions it has been.
func beyond(value float64, where string, limit float64, so, samples int) string {
	if samples == 1 {
		return say(value, where, limit)
	}
	return say(value, where, limit, ", decision ", so, " of ", samples, " in a row")
}
