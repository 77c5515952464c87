package autoscale

import (
	"math"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// target asks for the count that keeps a metric at a value: the algorithm of Kubernetes' Horizontal Pod Autoscaler, as
// documented in https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#algorithm-details
// and implemented in pkg/controller/podautoscaler/replica_calculator.go. The target has to be above 0.
//
// A mean is that of the members (upstream a metric of type Pods), and the count is the number of ready members times
// the ratio of the mean to the target, rounded up. A total is divided by the target (upstream an AverageValue of a
// metric of type Object or External). Both ask for the present count while the ratio is within the tolerance, which may
// differ by direction (KEP-4951).
//
// A role without members has no mean, and no number to multiply with it. As upstream, where an Object metric scales
// from zero, the count is the ratio itself, rounded up, without a tolerance: one member if the value is above 0, and
// more if it is above the target.
//
// A NaN or infinite value counts as missing and holds the count, as does a mean of no ready member.
func target(a domain.TargetAlgorithm, in asking) proposal {
	value := in.metric.Value
	switch {
	case a.Per != domain.TargetTotal && in.count > 0 && in.metric.Members != nil:
		return targetOfMembers(a, in)
	case !finite(value):
		return undecided(in, notANumber)
	case a.Per == domain.TargetTotal:
		// Without members, the ratio is infinite or NaN, which is never within the tolerance.
		if tolerance, ok := tolerated(in.policy, value/(a.Value*float64(in.count))); ok {
			return proposal{count: in.count, why: say(value, " for ", in.count, plural(in.count),
				" is within the tolerance of ", 100*tolerance, " % of ", a.Value, " each")}
		}
		count := wholeMembers(value / a.Value)
		return proposal{count: count, why: say(value, " at ", a.Value, " each: ", count, plural(count))}
	case in.count <= 0:
		count := wholeMembers(value / a.Value)
		return proposal{count: count, why: say(value, " of ", a.Value, " without members: ", count)}
	case in.ready <= 0:
		return undecided(in, "no member is ready")
	}
	return targetOfMean(a, in, value, in.ready)
}

// targetOfMean asks for the count by the mean of a number of ready members.
func targetOfMean(a domain.TargetAlgorithm, in asking, mean float64, ready int) proposal {
	ratio, count := mean/a.Value, in.count
	tolerance, tolerated := tolerated(in.policy, ratio)
	if !tolerated {
		count = wholeMembers(ratio * float64(ready))
	}
	switch {
	case in.quiet:
		return proposal{count: count}
	case tolerated:
		return proposal{
			count: count, why: say(mean, " of ", a.Value, " is within the tolerance of ", 100*tolerance, " %"),
		}
	}
	return proposal{
		count: count, why: say(mean, " of ", a.Value, ": ", ready, " ready", plural(ready), " × ", ratio, " = ", count),
	}
}

// targetOfMembers asks for the count by the values of single members, like upstream's calcPlainMetricReplicas.
//
// The mean of the members that are ready and have a value gives the direction. Those without one are then assumed to
// dampen it: at 0 when scaling out, which includes members that are not ready, and at the target when scaling in. For a
// metric in percent of the request with a target below 100 %, they are assumed to be at 100 % when scaling in, as in
// upstream's GetResourceReplicas. If that reverses the direction, or brings the mean within the tolerance, nothing
// changes.
func targetOfMembers(a domain.TargetAlgorithm, in asking) proposal {
	unready := map[string]bool{}
	for _, name := range in.metric.Unready {
		unready[name] = true
	}
	missing := len(in.metric.Missing)
	var room [32]float64
	values := room[:0]
	for name, value := range in.metric.Members {
		switch {
		case unready[name]:
		case finite(value):
			values = append(values, value)
		default:
			missing++
		}
	}
	if len(values) == 0 {
		return undecided(in, noneReady(in.metric))
	}
	slices.Sort(values) // the sum of float64s depends on their order, and that of a map is random
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	mean, considered := sum/float64(len(values)), len(values)
	ratio := mean / a.Value
	scalesOut := len(unready) > 0 && ratio > 1
	if !scalesOut && missing == 0 {
		return targetOfMean(a, in, mean, considered)
	}
	switch {
	case ratio < 1:
		assumed := a.Value
		if in.requested {
			assumed = max(assumed, 100)
		}
		sum += float64(missing) * assumed
		considered += missing
	case ratio > 1:
		considered += missing
	}
	if scalesOut {
		considered += len(unready)
	}
	damped := sum / float64(considered)
	again := damped / a.Value
	const others = " with members that are not ready or have no value"
	if tolerance, ok := tolerated(in.policy, again); ok {
		return proposal{
			count: in.count,
			why: say(mean, " of ", a.Value, ", ", damped, others+", is within the tolerance of ", 100*tolerance,
				" %"),
		}
	}
	count := wholeMembers(again * float64(considered))
	if (ratio < 1) != (again < 1) || again < 1 && count > in.count || again > 1 && count < in.count {
		return proposal{
			count: in.count, why: say(mean, " of ", a.Value, ", but ", damped, others+": ", in.count, " as before"),
		}
	}
	return proposal{
		count: count,
		why:   say(mean, " of ", a.Value, ", ", damped, others+": ", considered, " × ", again, " = ", count),
	}
}

// tolerated reports whether a ratio of value to target is close enough to 1 for no change, and returns the tolerance of
// its direction.
func tolerated(policy *domain.AutoscalingPolicy, ratio float64) (float64, bool) {
	behaviour := &policy.ScaleIn
	if ratio > 1 {
		behaviour = &policy.ScaleOut
	}
	tolerance := domain.DefaultTolerance
	if behaviour.Tolerance != nil {
		tolerance = *behaviour.Tolerance
	}
	return tolerance, math.Abs(ratio-1) <= tolerance+rounding
}

// noneReady says why no ready member has a value.
func noneReady(m Measurement) string {
	if m.ReadyAfter > 0 {
		return say("no ready member has a value: members are ready once they have run for ", m.ReadyAfter)
	}
	return "no ready member has a value"
}
