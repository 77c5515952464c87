package engine

import (
	"context"
	"time"
)

// Pace is how much of its time somebody spends who looks at all members again and again: when hundreds of them change
// one after another, a look after each change would keep those from working that make the changes.
type Pace struct {
	// Factor times what a look took is the rest before the next one, but at most Longest.
	Factor  int
	Longest time.Duration
}

var (
	// WaitPace is that of those whom somebody waits for.
	WaitPace = Pace{Factor: 3, Longest: 500 * time.Millisecond}
	// ResidentPace is that of residents, whose work is hardly ever urgent, and goes on while others work.
	ResidentPace = Pace{Factor: 50, Longest: 5 * time.Second}
)

// After returns the rest after a look that took a time.
func (p Pace) After(took time.Duration) time.Duration {
	return min(time.Duration(p.Factor)*min(took, p.Longest), p.Longest)
}

// Rest pauses after a look that began at a moment, or until ctx is done.
func (p Pace) Rest(ctx context.Context, began time.Time) {
	timer := time.NewTimer(p.After(time.Since(began)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
