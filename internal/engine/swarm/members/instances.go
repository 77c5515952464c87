package members

import (
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// instances are the tasks of one member, oldest first.
type instances struct {
	name  string
	index int
	tasks []swarm.Task
	// leaving means that the member was removed, and is about to end.
	leaving bool
}

// membersOf returns the members that a service stands for, with its tasks, oldest first. A service of an
// interchangeable role has one for each replica that it should have, and for each one still ending: its slots in order,
// whatever their numbers. If it should have none and none is left, it is represented by one without tasks.
func membersOf(service swarm.Service, tasks []swarm.Task) []instances {
	id := spec.IdentityOf(service)
	if !id.Pooled {
		return []instances{{name: id.Member(id.Index), index: id.Index, tasks: tasks}}
	}
	var members []instances
	for i, slot := range slotsOf(tasks) {
		members = append(members, instances{name: id.Member(i), index: i, tasks: slot, leaving: isLeaving(slot)})
	}
	for i := len(members); i < max(spec.Replicas(service.Spec), 1); i++ {
		members = append(members, instances{name: id.Member(i), index: i})
	}
	return members
}

// slotsOf returns tasks grouped by slot. Leaving slots come last, so that the others are numbered without a gap.
func slotsOf(tasks []swarm.Task) [][]swarm.Task {
	byNumber := map[int][]swarm.Task{}
	for _, task := range tasks {
		byNumber[task.Slot] = append(byNumber[task.Slot], task)
	}
	var staying, leaving [][]swarm.Task
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		if slot := byNumber[number]; isLeaving(slot) {
			leaving = append(leaving, slot)
		} else {
			staying = append(staying, slot)
		}
	}
	return append(staying, leaving...)
}

// isLeaving reports whether a slot was removed from its service.
func isLeaving(slot []swarm.Task) bool {
	return slot[len(slot)-1].DesiredState == swarm.TaskStateRemove
}
