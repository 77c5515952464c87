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
	case seen.Busy != "" && count < d.From:
		return d.limit(d.From, say(count, " wanted, but ", seen.Busy))
	}
	return count
}

// Spent is what a role has used of a day.
type Spent struct {
	// Hours are the member-hours of the day (UTC) that At is in, up to At.
	Hours float64   `json:"hours"`
	At    time.Time `json:"at"`
}

// withinBudget returns the least count once the day's member-hours are spent, and the present one as long as they are not.
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
	return d.limit(a.policy.Min, say("the ", budget, " member-hours of the day are used up")), true
}

// pass adds what so many members have used since the last time.
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

// learnStartup learns how long members take to start, once as many are ready as the count was raised to. Each start counts for half of what is
// known then: what starts slower today, such as with a larger image, is known after a few.
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

// lead returns a forecast with its lead, which may have to be learnt, and whether there is one.
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
