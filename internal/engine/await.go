package engine

import (
	"context"
	"errors"
	"time"
)

// ErrEventsLost is returned when the engine's event stream ends.
var ErrEventsLost = errors.New("lost the engine's event stream; run terraform apply again to continue")

// OutagePatience bounds how long a wait tolerates an unreachable engine: members keep running without it, and a
// ten-minute network outage is over by then.
const OutagePatience = 15 * time.Minute

// Await returns after the next engine event, or at moment unless that is the zero time.
func Await(ctx context.Context, events <-chan struct{}, moment time.Time) error {
	var alarm <-chan time.Time
	if !moment.IsZero() {
		timer := time.NewTimer(time.Until(moment))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-alarm:
		return nil
	case _, open := <-events:
		if open || ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrEventsLost
	}
}
