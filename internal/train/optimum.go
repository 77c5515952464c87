package train

import (
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Optimum returns the lowest cost of a problem for someone who knows its load beforehand and changes the count by one
// at a time, beginning with [Problem.Initial]. It uses dynamic programming, backwards over all times and counts. While
// a change is in progress there is nothing to decide, so the state at a time is only its count.
func Optimum(p Problem) (float64, error) {
	if p.Change.Takes == 0 && p.Startup > 0 {
		return 0, errors.New(
			"the optimum can only be computed if nothing changes while members start: a change must take some time",
		)
	}
	r, err := p.rehearsal()
	if err != nil {
		return 0, err
	}
	counts := p.Max - p.Min + 1
	length := time.Duration(len(p.Trace.Load)) * p.Trace.Step
	decisions := int((length + p.Interval - 1) / p.Interval)
	least := make([]float64, (decisions+1)*counts) // by time and count; nothing is left to pay at the end
	for t := decisions - 1; t >= 0; t-- {
		for count := p.Min; count <= p.Max; count++ {
			best := -1.0
			for action, by := range [qmodel.NumActions]int{qmodel.Up: 1, qmodel.Stay: 0, qmodel.Down: -1} {
				to := count + by
				if to < p.Min || to > p.Max {
					continue
				}
				r.Begin(time.Duration(t)*p.Interval, count)
				cost, took := p.pursue(r, action)
				if cost += least[min(t+took, decisions)*counts+to-p.Min]; best < 0 || cost < best {
					best = cost
				}
			}
			least[t*counts+count-p.Min] = best
		}
	}
	return least[p.Initial()-p.Min], nil
}

// pursue takes an action, and returns the cost until the next one can be taken, and how many decisions that is.
func (p Problem) pursue(r *autoscale.Rehearsal, action int) (cost float64, took int) {
	for {
		spent := r.Next(func(qmodel.State, [qmodel.NumActions]bool) int { return action })
		cost += p.Prices.Cost(spent.MemberHours, spent.Under, spent.Changes)
		took++
		if action = qmodel.Stay; r.Ended() || !r.Changing() {
			return cost, took
		}
	}
}
