package engine

import (
	"context"
	"errors"
	"time"
)

// ErrEventsLost is returned where the engine's stream of events ended.
var ErrEventsLost = errors.New("the engine's events were lost; apply again to go on")

// OutagePatience bounds how long a wait outlasts that an engine can't be asked: members go on without it, and a network
// that is down for ten minutes is back then.
const OutagePatience = 15 * time.Minute

// Await returns after an event of an engine, or at a moment, if that is not the zero time.
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
