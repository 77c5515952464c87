package autoscale

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// guarded returns a count as far as the guards allow it.
func (a *Autoscaler) guarded(d *Decision, seen *Seen, count int) int {
	switch {
	case count == d.From:
		return count
	case a.policy.Paused == domain.PauseAll:
		return d.limit(d.From, say(count, " wanted, but the policy is paused"))
	case a.policy.Paused == domain.PauseOut && count > d.From:
		return d.limit(d.From, say(count, " wanted, but scaling out is paused"))
	case a.policy.Paused == domain.PauseIn && count < d.From:
		return d.limit(d.From, say(count, " wanted, but scaling in is paused"))
	case seen.Held != "":
		return d.limit(d.From, say(count, " wanted, but ", seen.Held))
	}
	if seen.Busy != "" && count < d.From {
		d.guarded = true
		return d.limit(d.From, say(count, " wanted, but ", seen.Busy))
	}
	if why := a.busy(d); why != "" && (count < d.From || a.policy.Guards.Busy.Pauses == domain.PauseAll) {
		d.guarded = count < d.From
		return d.limit(d.From, say(count, " wanted, but ", why))
	}
	if count < d.From {
		return a.notBelow(d, count)
	}
	return count
}

// Guarded is the value of a guard's source.
type Guarded struct {
	// Name is as in [domain.GuardQuestion]. What describes in words what it asks.
	Name, What string
	// Value is nil if there is no usable one, and Why says why.
	Value *float64
	Why   string
	// NeverSince is when a guard that has never had a value was first asked; zero for all others.
	NeverSince time.Time
}

// askGuards returns the values of the policy's guards, and records which of them have had a value.
func (a *Autoscaler) askGuards(state *State, seen *Seen) []Guarded {
	if len(a.guards) == 0 {
		state.Answered, state.Silent = nil, nil
		return nil
	}
	answered, silent := map[string]bool{}, map[string]time.Time{}
	guards := make([]Guarded, 0, len(a.guards))
	for _, asked := range a.guards {
		g, there := guardedBy(asked, seen)
		key := asked.Name + " " + asked.What
		switch since, asking := state.Silent[key]; {
		case g.Value != nil || state.Answered[key]:
			answered[key] = true
		case asking && !since.After(seen.Now):
			g.NeverSince, silent[key] = since, since
		case there:
			g.NeverSince, silent[key] = seen.Now, seen.Now
		}
		guards = append(guards, g)
	}
	state.Answered, state.Silent = answered, silent
	return guards
}

// guardedBy returns the value of a guard's source, and whether it was asked.
func guardedBy(asked domain.GuardQuestion, seen *Seen) (g Guarded, there bool) {
	g = Guarded{Name: asked.Name, What: asked.What}
	m, there := seen.Guards[asked.Name]
	switch {
	case !there:
		g.Why = "it was not asked"
	case m.Why != "":
		g.Why = m.Why
	case !finite(m.Value):
		g.Why = notANumber
	case seen.Now.Sub(m.At) > domain.DefaultStaleAfter:
		g.Why = say("stale: its last value is ", seen.Now.Sub(m.At).Round(time.Second), " old")
	default:
		g.Value = &m.Value
	}
	return g, there
}

// Refusal returns why the guards do not let a role shrink to a count for which a decision was made earlier; "" if they
// do.
func (a *Autoscaler) Refusal(seen Seen, to int) string {
	d := Decision{From: seen.Count}
	for _, asked := range a.guards {
		g, _ := guardedBy(asked, &seen)
		d.Guards = append(d.Guards, g)
	}
	if a.guarded(&d, &seen, to) <= to {
		return ""
	}
	return d.limits[len(d.limits)-1]
}

// busy says why the role is busy according to the guard's sources, or why that is unknown; "" if it is not busy.
func (a *Autoscaler) busy(d *Decision) string {
	for _, g := range d.Guards {
		switch {
		case g.Name == domain.GuardAtLeast:
		case g.Value == nil:
			return say("it is unknown whether the role is busy: ", g.Why)
		case *g.Value != 0:
			return say("the role is busy: ", g.What, " is ", *g.Value)
		}
	}
	return ""
}

// needed returns the count from the source of the guard at_least, and the guard; nil if there is no such guard.
func (d *Decision) needed() (count int, by *Guarded) {
	for i := range d.Guards {
		if g := &d.Guards[i]; g.Name == domain.GuardAtLeast {
			if g.Value != nil {
				count = wholeMembers(*g.Value)
			}
			return count, g
		}
	}
	return 0, nil
}

// atLeast raises the count to what the source of at_least says, up to the policy's maximum.
func (a *Autoscaler) atLeast(d *Decision, count int) int {
	needed, by := d.needed()
	if by == nil || by.Value == nil || needed <= count || count >= a.policy.Max {
		return count
	}
	d.guarded = count < d.From
	why := say(count, " wanted, but guards.at_least requires ", *by.Value, ": ", by.What)
	return d.limit(min(needed, a.policy.Max), why)
}

// notBelow does not let the count drop below what the source of at_least says, or at all if that is unknown, whatever
// the policy's bounds.
func (a *Autoscaler) notBelow(d *Decision, count int) int {
	needed, by := d.needed()
	switch {
	case by == nil:
		return count
	case by.Value == nil:
		d.guarded = true
		return d.limit(d.From, say(count, " wanted, but it is unknown how many are needed: ", by.Why))
	case needed > count:
		d.guarded = true
		return d.limit(min(needed, d.From),
			say(count, " wanted, but guards.at_least requires ", *by.Value, ": ", by.What))
	}
	return count
}

// Spent is what a role has used of a day.
type Spent struct {
	// Hours are the member-hours of the day (UTC) of At, up to At.
	Hours float64   `json:"hours"`
	At    time.Time `json:"at"`
}

// withinBudget returns the minimum count once the day's member-hours are spent, and the present one until then.
func (a *Autoscaler) withinBudget(d *Decision, state *State, seen *Seen) (count int, spent bool) {
	budget := a.policy.Guards.MemberHoursPerDay
	if budget <= 0 {
		state.Spent = nil
		return d.From, false
	}
	if state.Spent == nil {
		state.Spent = &Spent{At: seen.Now}
	}
	state.Spent.pass(seen.Now, seen.Count)
	if state.Spent.Hours < budget {
		return d.From, false
	}
	return d.limit(a.policy.Min, say("the daily budget of ", budget, " member-hours is used up")), true
}

// pass adds what the members have used since the last time.
func (s *Spent) pass(now time.Time, members int) {
	since := s.At
	if midnight := now.UTC().Truncate(24 * time.Hour); since.Before(midnight) {
		s.Hours, since = 0, midnight
	}
	if now.After(since) {
		s.Hours += float64(members) * now.Sub(since).Hours()
	}
	s.At = now
}

// learnStartup learns how long members take to start, once as many are ready as the count was raised to. Each start has
// a weight of one half, so that slower starts, such as with a larger image, are learned after a few.
func (s *State) learnStartup(seen *Seen) {
	if s.Starting == nil || seen.Ready < s.Starting.Value {
		return
	}
	took := seen.Now.Sub(s.Starting.At)
	s.Starting = nil
	switch {
	case took < 0:
	case s.Startup == 0:
		s.Startup = took
	default:
		s.Startup = (s.Startup + took) / 2
	}
}

// lead returns a forecast with its lead, which may have to be learned, and whether there is one.
func lead(f *domain.Forecast, startup time.Duration) (domain.Forecast, bool) {
	if f == nil {
		return domain.Forecast{}, false
	}
	forecast := *f
	if forecast.Lead == 0 {
		forecast.Lead = domain.Duration(startup)
	}
	return forecast, forecast.Lead > 0
}
