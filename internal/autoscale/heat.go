package autoscale

import (
	"cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// defaultRecurrence is the heat at which a role is scaled, as in the publication.
const defaultRecurrence = 3

// heat scales a role by the heat of a metric, after P. Stolin, "Automated Deployment of Machine Learning Applications
// on a Scalable Heterogeneous GPU-Accelerated Apache Spark Cluster" (2021).
//
// A metric that is at least at the upper threshold adds 1 to the heat, and one that is at most at the lower threshold takes 1 away; each of
// them begins at 0 where the heat was of the other sign. In between, the heat goes a step towards 0. Where it comes to the recurrence factor
// n or to −n, the role is scaled, and the heat is 0 again. The count is that of the Kubernetes autoscaler without a tolerance:
//
//	count = ⌈active × value / target⌉
//
// where active are the members that are ready, or those of them whose values are known. As in the publication, that
// count is taken as it is: nothing keeps it from being smaller than the present count though the metric is hot, which
// happens where members that were ordered are not ready yet. There, cooldowns are against that, and here, too, they are
// the policy's: see [domain.ScalingBehaviour]. Unlike there, where nothing is evaluated in a cooldown, the heat counts
// during one as at any other time.
//
// A metric that is neither hot nor cold enough abstains with its count, for when another one is: the largest count of
// all metrics is taken.
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
		switch {
		case u <= a.Lower:
			where, limit = " is at most ", a.Lower
		case u < a.Upper:
			return proposal{count, true, say("heat ", m.Heat, " of ", recurrence, ": ", u, " is between ", a.Lower, " and ", a.Upper)}
		}
		return proposal{count, true, say("heat ", m.Heat, " of ", recurrence, ": ", u, where, limit)}
	}
	if m.Heat < 0 {
		where, limit = " is at most ", a.Lower
	}
	why := say("heat ", m.Heat, " of ", recurrence, ": ", u, where, limit, ", and ", active, " × ", u, " / ", a.Target, " makes ", count)
	m.Heat = 0
	return proposal{count: count, why: why}
}
