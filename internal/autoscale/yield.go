package autoscale

// Yield has members of a role go, so that somebody more important has their room.
type Yield struct {
	// Count is how many members stay, no fewer than the policy's least count.
	Count int
	// For says in words who waits.
	For string
}

// yield returns how many members stay where somebody more important waits for the room of others. It is no noise of a
// metric, but a bound that has come lower: so neither window nor rate nor cooldown counts. Guards do, and where they
// keep any of the members that are to go, all stay, as fewer would go in vain.
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

// Spare returns the least count to which a role can be brought for somebody more important, by what its guards were
// told, and why it is not the policy's least one; "" where it is.
func (a *Autoscaler) Spare(seen Seen, guards []Guarded) (count int, why string) {
	d := Decision{From: seen.Count, Guards: guards}
	count = max(a.guarded(&d, &seen, a.policy.Min), a.policy.Min)
	if count > a.policy.Min && len(d.limits) > 0 {
		why = d.limits[len(d.limits)-1]
	}
	return count, why
}
