//go:build linux

package telemetry

import (
	"context"
	"math"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
)

const (
	// unitsEvery is how often systemd is asked for its units' traffic. That takes two calls per unit, more than
	// everything else that is read of a unit meanwhile.
	unitsEvery = 5 * time.Second
	// unitPatience is how long a sample waits for systemd.
	unitPatience = 250 * time.Millisecond
)

// UnitSource reads the traffic of instances that are units of systemd, as far as systemd counts it.
type UnitSource func(ctx context.Context) (map[string]units.Traffic, error)

// unitLook is what systemd reported of its units at one time, by instance.
type unitLook struct {
	at     time.Time
	counts map[string]units.Traffic
	// rates are per second, since the previous look; unknown for units that it didn't include.
	rates map[string]counted
	err   error
}

// lookAtUnits takes another look.
func (s Settings) lookAtUnits(ctx context.Context, before unitLook) unitLook {
	if s.Units == nil {
		return unitLook{}
	}
	ctx, cancel := context.WithTimeout(ctx, unitPatience)
	defer cancel()
	counts, err := s.Units(ctx)
	return before.then(time.Now(), counts, err)
}

// then returns the look after this one.
func (l unitLook) then(at time.Time, counts map[string]units.Traffic, err error) unitLook {
	if err != nil {
		return unitLook{at: at, err: err}
	}
	next := unitLook{at: at, counts: counts, rates: make(map[string]counted, len(counts))}
	for id, now := range counts {
		if before, seen := l.counts[id]; seen {
			elapsed := at.Sub(l.at)
			next.rates[id] = counted{
				rate(float64(before.Received), float64(now.Received), elapsed),
				rate(float64(before.Sent), float64(now.Sent), elapsed),
			}
		}
	}
	return next
}

// of returns the traffic of an instance, if it is a unit whose traffic is counted.
func (l unitLook) of(id string) (t traffic, found bool) {
	total, found := l.counts[id]
	rates, known := l.rates[id]
	if !known {
		rates = counted{math.NaN(), math.NaN()}
	}
	return traffic{counted: counted{float64(total.Received), float64(total.Sent)}, rates: &rates}, found
}
