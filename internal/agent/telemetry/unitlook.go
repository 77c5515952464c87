//go:build linux

package telemetry

import (
	"context"
	"math"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
)

const (
	// unitsEvery is how often systemd is asked what its units received and sent. That takes two calls a unit, and more
	// than all else that is read of one in the meantime.
	unitsEvery = 5 * time.Second
	// unitPatience is how long a sample waits for systemd.
	unitPatience = 250 * time.Millisecond
)

// UnitSource reads the traffic of instances that are units of systemd, as far as that counts it.
type UnitSource func(ctx context.Context) (map[string]units.Traffic, error)

// unitLook is what systemd told at a time of its units, by instance.
type unitLook struct {
	at     time.Time
	counts map[string]units.Traffic
	// rates are per second, since the look before; they are not known of what was not seen then.
	rates map[string]counted
	err   error
}

// lookAtUnits looks at them anew.
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
				rate(float64(before.Received), float64(now.Received), elapsed), rate(float64(before.Sent), float64(now.Sent), elapsed),
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
