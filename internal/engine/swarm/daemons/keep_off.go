package daemons

import (
	"context"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// KeepOff excludes nodes that rejected the agents: those that joined since the image was loaded don't have it, and a
// Swarm would retry forever. The next start of the controller loads it there, and includes them again.
func (e Daemons) KeepOff(ctx context.Context) error {
	services, tasks, err := e.Reads.ServicesWithTasks(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(services, func(s swarm.Service) bool { return isAgent(s, e.Cluster) })
	if i < 0 {
		return nil
	}
	rejecting := rejectingNodes(services[i], tasks[services[i].ID])
	if len(rejecting) == 0 {
		return nil
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	return e.UpdateService(ctx, m, services[i], services[i].Spec.Name, "",
		func(live swarm.Service) (swarm.ServiceSpec, bool) {
			next := live.Spec
			next.TaskTemplate.Placement = spec.KeepOff(next.TaskTemplate.Placement, rejecting)
			return next, live.Version == services[i].Version // otherwise the next call decides
		})
}

// rejectingNodes returns the nodes that rejected a task of a global service's current version because they lack its
// image, and have not run one since. It skips tasks that were not tried yet, as a Swarm replaces a rejected one at
// once, and goes by the image's name in the error, since Engines word it differently and also reject tasks whose
// network they don't know yet.
func rejectingNodes(service swarm.Service, own []swarm.Task) []string {
	spec := service.Spec.TaskTemplate.ContainerSpec
	if spec == nil || !images.IsLocal(spec.Image) {
		return nil
	}
	var nodes []string
	tried := slices.DeleteFunc(slices.Clone(own), func(task swarm.Task) bool {
		return task.Status.State != swarm.TaskStateRunning && !dockerapi.Ended(task)
	})
	for id, task := range dockerapi.NewestByNode(tried) {
		if id != "" && task.Status.State == swarm.TaskStateRejected &&
			strings.Contains(task.Status.Err, images.ProgramRepository) && task.CreatedAt.After(service.UpdatedAt) {
			nodes = append(nodes, id)
		}
	}
	slices.Sort(nodes)
	return nodes
}
