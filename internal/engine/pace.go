package engine

import (
	"context"
	"time"
)

// Pace limits how much of its time a poller of all members spends: if hundreds of them change one after another,
// polling after each change would slow down the very changes.
type Pace struct {
	// Factor times the duration of a poll is the pause before the next one, at most Longest.
	Factor  int
	Longest time.Duration
}

var (
	// WaitPace is for callers that somebody waits for.
	WaitPace = Pace{Factor: 3, Longest: 500 * time.Millisecond}
	// ResidentPace is for resident processes, whose work is hardly ever urgent and competes with that of others.
	ResidentPace = Pace{Factor: 50, Longest: 5 * time.Second}
)

// After returns the pause after a poll that took this long.
func (p Pace) After(took time.Duration) time.Duration {
	return min(time.Duration(p.Factor)*min(took, p.Longest), p.Longest)
}

// Rest pauses after a poll that began at this time, or until ctx is done.
func (p Pace) Rest(ctx context.Context, began time.Time) {
	timer := time.NewTimer(p.After(time.Since(began)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
