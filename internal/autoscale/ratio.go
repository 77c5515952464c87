package autoscale

import (
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// ratio keeps members in proportion to those of another role of the group, such as one parameter server for every four
// workers:
//
//	count = ⌈members of the other role / per⌉
//
// It is the linear mode of Kubernetes' cluster-proportional-autoscaler
// (https://github.com/kubernetes-sigs/cluster-proportional-autoscaler), with members of a role instead of nodes. If the
// group has no such role, it abstains.
func ratio(a domain.RatioAlgorithm, in asking) proposal {
	others, known := in.roles[a.Role]
	if !known {
		return undecided(in, say("the group has no role ", a.Role))
	}
	count := wholeMembers(float64(others) / a.Per)
	return proposal{count: count, why: say("role ", a.Role, " has a count of ", others, ": one for every ", a.Per)}
}
