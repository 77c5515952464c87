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

// KeepOff keeps the agents off nodes where they were rejected: those that joined since the image was loaded have it
// not, and a Swarm would try again for ever. The next start of the controller, which loads it there, tries them anew.
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
	return e.UpdateService(ctx, m, services[i], services[i].Spec.Name, "", func(live swarm.Service) (swarm.ServiceSpec, bool) {
		next := live.Spec
		next.TaskTemplate.Placement = spec.KeepOff(next.TaskTemplate.Placement, rejecting)
		return next, live.Version == services[i].Version // or else it is looked at again
	})
}

// rejectingNodes returns the nodes that rejected a task of a global service's current version because they lack its
// image, and have not run one since. A Swarm replaces a rejected task at once, so the newest is mostly about to be
// tried. Engines word the reason differently, but all name the image. They also reject a task if they haven't learned
// of its network yet.
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
		if id != "" && task.Status.State == swarm.TaskStateRejected && strings.Contains(task.Status.Err, images.ProgramRepository) && task.CreatedAt.After(service.UpdatedAt) {
			nodes = append(nodes, id)
		}
	}
	slices.Sort(nodes)
	return nodes
}
