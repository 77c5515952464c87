package dockerapi

import (
	"slices"

	"github.com/docker/docker/api/types/swarm"
)

// Ended reports whether a task will not run any more.
func Ended(task swarm.Task) bool {
	switch task.Status.State {
	case swarm.TaskStateComplete, swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateShutdown,
		swarm.TaskStateOrphaned:
		return true
	}
	return false
}

// TasksByService returns tasks by service ID, each service's oldest first.
func TasksByService(tasks []swarm.Task) map[string][]swarm.Task {
	of := map[string][]swarm.Task{}
	for _, task := range tasks {
		of[task.ServiceID] = append(of[task.ServiceID], task)
	}
	for _, tasks := range of {
		slices.SortFunc(tasks, func(a, b swarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	}
	return of
}

// NewestByNode returns the newest of a global service's tasks on each node.
func NewestByNode(own []swarm.Task) map[string]swarm.Task {
	newest := map[string]swarm.Task{}
	for _, task := range own {
		newest[task.NodeID] = task
	}
	return newest
}
