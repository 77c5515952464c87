package members

import (
	"reflect"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// isReplaced reports whether a running task is about to be replaced: it was told to end, or its service was changed
// since in a way that requires another task.
func isReplaced(nodes dockerapi.Nodes, service swarm.Service, task swarm.Task) bool {
	if task.DesiredState != swarm.TaskStateRunning {
		return true
	}
	is := service.Spec
	is.TaskTemplate = task.Spec
	is.TaskTemplate.Placement, is.TaskTemplate.Runtime = service.Spec.TaskTemplate.Placement,
		service.Spec.TaskTemplate.Runtime
	if !reflect.DeepEqual(is.TaskTemplate, service.Spec.TaskTemplate) &&
		(is.TaskTemplate.ForceUpdate != service.Spec.TaskTemplate.ForceUpdate ||
			spec.Seal(is) != spec.Seal(service.Spec)) {
		return true
	}
	// Another placement makes no difference to a task whose node still meets it.
	return !reflect.DeepEqual(task.Spec.Placement, service.Spec.TaskTemplate.Placement) &&
		!nodes.Meets(task.NodeID, service.Spec)
}
