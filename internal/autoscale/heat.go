package autoscale

import (
	"cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// defaultRecurrence is the heat at which a role is scaled, as in the paper.
const defaultRecurrence = 3

// heat scales a role by the heat of a metric, after P. Stolin, "Automated Deployment of Machine Learning Applications
// on a Scalable Heterogeneous GPU-Accelerated Apache Spark Cluster" (2021).
//
// A metric at or above the upper threshold adds 1 to the heat, and one at or below the lower threshold subtracts 1;
// either starts from 0 if the heat had the other sign. In between, the heat moves one step towards 0. When it reaches
// the recurrence factor n or −n, the role is scaled and the heat is reset to 0. The count is that of the Kubernetes
// autoscaler without a tolerance:
//
//	count = ⌈active × value / target⌉
//
// where active are the ready members, or those of them whose values are known. As in the paper, the count is used
// as it is. It may be smaller than the present count although the metric is hot, which happens while ordered members
// are not ready yet. Cooldowns prevent that there, and here, too, they belong to the policy: see
// [domain.ScalingBehaviour]. Unlike there, where nothing is evaluated during a cooldown, the heat keeps counting.
//
// A metric that is neither hot nor cold enough abstains with its count, which matters if another metric acts, as the
// largest count of all metrics is used. Outside the band, it is pending: a hot one never with fewer members than there
// are, and a cold one only if any member is ready.
func heat(a domain.HeatAlgorithm, m *Memory, in asking) proposal {
	u := in.metric.Value
	if !finite(u) {
		return undecided(in, notANumber)
	}
	recurrence := cmp.Or(a.Recurrence, defaultRecurrence)
	switch {
	case u >= a.Upper:
		m.Heat = max(m.Heat, 0) + 1
	case u <= a.Lower:
		m.Heat = min(m.Heat, 0) - 1
	default:
		m.Heat -= cmp.Compare(m.Heat, 0)
	}
	active := in.active()
	count := wholeMembers(float64(active) * u / a.Target)
	where, limit := " is at least ", a.Upper
	if m.Heat < recurrence && m.Heat > -recurrence {
		p := proposal{count: count, abstains: true}
		switch {
		case u >= a.Upper:
			p.pending = new(max(count, in.count))
		case u > a.Lower:
			p.why = say("heat ", m.Heat, " of ", recurrence, ": ", u, " is between ", a.Lower, " and ", a.Upper)
			return p
		default:
			where, limit = " is at most ", a.Lower
			if active > 0 {
				p.pending = new(count)
			}
		}
		p.why = say("heat ", m.Heat, " of ", recurrence, ": ", u, where, limit)
		return p
	}
	if m.Heat < 0 {
		where, limit = " is at most ", a.Lower
	}
	why := say("heat ", m.Heat, " of ", recurrence, ": ", u, where, limit, ", and ", active, " × ", u, " / ", a.Target,
		" makes ", count)
	m.Heat = 0
	return proposal{count: count, why: why}
}
