package swarm

import (
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// stoppedSpec returns a service that can't be placed.
func stoppedSpec(live swarm.ServiceSpec, reason domain.StopReason) swarm.ServiceSpec {
	live.Labels = maps.Clone(live.Labels)
	if live.Labels == nil {
		live.Labels = map[string]string{}
	}
	live.Labels[labelStop] = string(reason)
	placement := swarm.Placement{}
	if live.TaskTemplate.Placement != nil {
		placement = *live.TaskTemplate.Placement
	}
	if !slices.Contains(placement.Constraints, nowhere) {
		placement.Constraints = append(slices.Clone(placement.Constraints), nowhere)
	}
	live.TaskTemplate.Placement = &placement
	if identityIn(identifying(live)).pooled && live.UpdateConfig != nil {
		// All at once: the Swarm would wait for what takes the place of the first ones, and that never runs.
		config := *live.UpdateConfig
		config.Parallelism, config.Delay = 0, 0
		live.UpdateConfig = &config
	}
	return live
}
