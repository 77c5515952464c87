package autoscale

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// queue asks for one member per given part of a queue, and none after it has been empty for a while:
//
//	count = ⌈length / per member⌉
//
// It is the rule of KEDA (https://keda.sh/docs/latest/reference/scaledobject-spec/) for an activation threshold of 0.
// The cool-down only applies to the last member, like KEDA's cooldownPeriod; how fast the others go is up to the
// policy's scale-in. A role without members gets its first one as soon as there is anything in the queue, and an empty
// queue starts none.
func queue(a domain.QueueAlgorithm, m *Memory, in asking) proposal {
	length := in.metric.Value
	if !finite(length) {
		return undecided(in, notANumber)
	}
	if length > 0 {
		m.EmptySince = time.Time{}
		count := max(wholeMembers(length/a.PerMember), 1)
		return proposal{count: count, why: say("a queue of ", length, ", ", a.PerMember, " for each member")}
	}
	if m.EmptySince.IsZero() || in.now.Before(m.EmptySince) {
		m.EmptySince = in.now
	}
	empty, coolDown := in.now.Sub(m.EmptySince), a.CoolDown.Or(domain.DefaultQueueCoolDown)
	rounded := empty.Round(time.Second / 10)
	if empty >= coolDown {
		return proposal{why: say("the queue has been empty for ", rounded)}
	}
	return proposal{
		count: min(in.count, 1),
		why:   say("the queue has been empty for ", rounded, ", and the last member stays for ", coolDown),
	}
}
