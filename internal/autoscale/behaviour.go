package autoscale

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// stabilise returns the stabilised count for a wanted one, given what was asked for before, and why it differs; "" if
// it does not.
//
// It is stabilizeRecommendationWithBehaviors of Kubernetes' pkg/controller/podautoscaler/horizontal.go: a role is
// scaled out to the smallest count asked for in the scale-out window, in to the largest one in the scale-in window, and
// between the two the count stays.
//
// asked is what was asked for, oldest first, unstabilised. The wanted count belongs to both windows, whether asked
// already has it or not.
func stabilise(policy *domain.AutoscalingPolicy, asked []At[int], now time.Time, count, wanted int) (int, string) {
	out, in := stabilisations(policy)
	sinceOut, sinceIn := now.Add(-out), now.Add(-in)
	smallest, largest := wanted, wanted
	for _, former := range slices.Backward(asked) {
		recentOut, recentIn := former.At.After(sinceOut), former.At.After(sinceIn)
		if !recentOut && !recentIn {
			break
		}
		if recentOut {
			smallest = min(smallest, former.Value)
		}
		if recentIn {
			largest = max(largest, former.Value)
		}
	}
	stable := min(max(count, smallest), largest)
	switch {
	case stable == wanted:
		return stable, ""
	case wanted > count:
		return stable, say(wanted, " wanted, but ", smallest, " was enough in the last ", out)
	}
	return stable, say(wanted, " wanted, but ", largest, " was needed in the last ", in)
}

// stabilisations returns the stabilisation windows, with the defaults filled in.
func stabilisations(policy *domain.AutoscalingPolicy) (out, in time.Duration) {
	return policy.ScaleOut.Stabilisation.Or(domain.DefaultStabilisationOut),
		policy.ScaleIn.Stabilisation.Or(domain.DefaultStabilisationIn)
}

// longestStabilisation returns how long the counts asked for have to be remembered.
func longestStabilisation(policy *domain.AutoscalingPolicy) time.Duration {
	out, in := stabilisations(policy)
	return max(out, in)
}

// defaultRatesOut are Kubernetes' defaults. Its default for scaling in, 100 % every 15 s, is no limit at all, and has
// no counterpart here.
var defaultRatesOut = []domain.ScalingRate{
	{Count: 4, Period: domain.Duration(15 * time.Second)},
	{Percent: 100, Period: domain.Duration(15 * time.Second)},
}

// ratesOut returns the rates of scaling out, with the defaults filled in.
func ratesOut(policy *domain.AutoscalingPolicy) []domain.ScalingRate {
	if len(policy.ScaleOut.Rates) == 0 {
		return defaultRatesOut
	}
	return policy.ScaleOut.Rates
}

// longestPeriod returns how long changes have to be remembered; 0 if there are no rates.
func longestPeriod(policy *domain.AutoscalingPolicy) time.Duration {
	longest := domain.Duration(0)
	for _, rate := range ratesOut(policy) {
		longest = max(longest, rate.Period)
	}
	for _, rate := range policy.ScaleIn.Rates {
		longest = max(longest, rate.Period)
	}
	return time.Duration(longest)
}

// limit returns the allowed count for a wanted one, by the rates and the maximum step of the direction, and why it
// differs; "" if it does not.
//
// It is convertDesiredReplicasWithBehaviorRate of the same file: a rate applies to the count at the beginning of its
// period, which is the present one without the changes since, in either direction. A count that already exceeds the
// rate stays.
//
// changes are the changes of the count, negative if it was scaled in, oldest first.
func limit(policy *domain.AutoscalingPolicy, changes []At[int], now time.Time, count, wanted int) (int, string) {
	switch {
	case wanted > count:
		return limitOut(policy, changes, now, count, wanted)
	case wanted < count:
		return limitIn(policy, changes, now, count, wanted)
	}
	return wanted, ""
}

// limitOut is limit for a count above the present one.
func limitOut(policy *domain.AutoscalingPolicy, changes []At[int], now time.Time, count, wanted int) (int, string) {
	behaviour := policy.ScaleOut
	if behaviour.Select == domain.SelectDisabled {
		return count, "scaling out is disabled"
	}
	var bound int
	var by domain.ScalingRate
	for i, rate := range ratesOut(policy) {
		start := countBefore(changes, now, rate.Period, count)
		most := start + min(rate.Count, domain.MaxReplicas)
		if rate.Percent > 0 {
			// Rounded up, as a small role would never grow otherwise. The order of operations and so the rounding are
			// upstream's: 10 % of 100 gives 11, as 1.1 is slightly more than that in binary.
			most = int(math.Ceil(min(max(float64(start)*(1+rate.Percent/100), 0), domain.MaxReplicas)))
			most = max(most, start+1) // a percentage of no members would never be one
		}
		if i == 0 || (most > bound) == (behaviour.Select != domain.SelectMin) {
			bound, by = most, rate
		}
	}
	return limited(count, wanted, max(bound, count), by, behaviour.MaxStep)
}

// limitIn is limit for a count below the present one.
func limitIn(policy *domain.AutoscalingPolicy, changes []At[int], now time.Time, count, wanted int) (int, string) {
	behaviour := policy.ScaleIn
	if behaviour.Select == domain.SelectDisabled {
		return count, "scaling in is disabled"
	}
	var bound int
	var by domain.ScalingRate
	for i, rate := range behaviour.Rates {
		start := countBefore(changes, now, rate.Period, count)
		least := max(start-min(rate.Count, domain.MaxReplicas), 0)
		if rate.Percent > 0 {
			least = int(max(float64(start)*(1-rate.Percent/100), 0)) // what stays is rounded down, as upstream
		}
		if i == 0 || (least < bound) == (behaviour.Select != domain.SelectMin) {
			bound, by = least, rate
		}
	}
	return limited(count, wanted, min(bound, count), by, behaviour.MaxStep)
}

// limited returns the wanted count, or the nearest one allowed by bound, which comes from a rate, and by the maximum
// step; 0 means no maximum step.
func limited(count, wanted, bound int, by domain.ScalingRate, step int) (int, string) {
	allowed := max(wanted, bound)
	if wanted > count {
		allowed = min(wanted, bound)
	}
	if stepped := min(max(allowed, count-step), count+step); step > 0 && stepped != allowed {
		return stepped, say(wanted, " wanted, but at most ", step, plural(step), " per step: ", stepped)
	}
	switch {
	case allowed == wanted:
		return allowed, ""
	case by.Percent > 0:
		return allowed, say(wanted, " wanted, but at most ", by.Percent, " % in ", time.Duration(by.Period), ": ",
			allowed)
	}
	return allowed, say(wanted, " wanted, but at most ", by.Count, plural(by.Count), " in ", time.Duration(by.Period),
		": ", allowed)
}

// countBefore returns the count at the beginning of the period that ends now.
func countBefore(changes []At[int], now time.Time, period domain.Duration, count int) int {
	since := now.Add(-time.Duration(period))
	for i := len(changes) - 1; i >= 0 && changes[i].At.After(since); i-- {
		count -= changes[i].Value
	}
	return count
}

// keepRecent returns the part of a list, oldest first, that is not older than keep. The list itself is not changed.
func keepRecent[T any](list []At[T], now time.Time, keep time.Duration) []At[T] {
	since := now.Add(-keep)
	for len(list) > 0 && list[0].At.Before(since) {
		list = list[1:]
	}
	return list
}
