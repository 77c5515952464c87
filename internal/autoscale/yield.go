package autoscale

// Yield removes members of a role to make room for something more important.
type Yield struct {
	// Count is how many members stay, no fewer than the policy's minimum.
	Count int
	// For says who waits.
	For string
}

// yield returns how many members stay when something more important waits for the room of the others. This is not noise
// in a metric but a lower bound, so windows, rates and cooldowns do not apply. Guards do, and if they keep any of the
// members that should go, all stay, as removing fewer would be pointless.
func (a *Autoscaler) yield(d *Decision, seen *Seen) int {
	if seen.Yield == nil || seen.Yield.Count >= d.From {
		return d.From
	}
	count := max(seen.Yield.Count, a.policy.Min)
	d.limit(count, say("gives way to ", seen.Yield.For, ", down to ", count, plural(count)))
	if a.guarded(d, seen, count) > count {
		return d.From
	}
	return count
}

// Spare returns the lowest count to which a role can be reduced for something more important, given its guards, and why
// that is above the policy's minimum; "" if it is not.
func (a *Autoscaler) Spare(seen Seen, guards []Guarded) (count int, why string) {
	d := Decision{From: seen.Count, Guards: guards}
	count = max(a.guarded(&d, &seen, a.policy.Min), a.policy.Min)
	if count > a.policy.Min && len(d.limits) > 0 {
		why = d.limits[len(d.limits)-1]
	}
	return count, why
}
