package spec

import (
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Stopped returns a live service with constraints that no node meets, labelled with the reason.
func Stopped(live swarm.ServiceSpec, reason domain.StopReason) swarm.ServiceSpec {
	live.Labels = maps.Clone(live.Labels)
	if live.Labels == nil {
		live.Labels = map[string]string{}
	}
	live.Labels[LabelStop] = string(reason)
	live = Nowhere(live)
	if !identityIn(identifying(live)).Pooled {
		return live
	}
	if live.UpdateConfig != nil {
		// All at once: otherwise the Swarm would wait for replacements of the first ones, which never run.
		config := *live.UpdateConfig
		config.Parallelism, config.Delay = 0, 0
		live.UpdateConfig = &config
	}
	policy := live.TaskTemplate.RestartPolicy
	if policy != nil && policy.MaxAttempts != nil && *policy.MaxAttempts > 0 {
		// The Swarm keeps one task more than it makes attempts. The task that waits for a node is another one, and
		// without the first attempt, those that failed for good would read as if there were attempts left.
		kept := *policy
		kept.MaxAttempts = new(*policy.MaxAttempts + 1)
		live.TaskTemplate.RestartPolicy = &kept
	}
	return live
}

// Nowhere returns a live service with constraints that no node meets.
func Nowhere(live swarm.ServiceSpec) swarm.ServiceSpec {
	placement := swarm.Placement{}
	if live.TaskTemplate.Placement != nil {
		placement = *live.TaskTemplate.Placement
	}
	if !slices.Contains(placement.Constraints, nowhere) {
		placement.Constraints = append(slices.Clone(placement.Constraints), nowhere)
	}
	live.TaskTemplate.Placement = &placement
	return live
}
