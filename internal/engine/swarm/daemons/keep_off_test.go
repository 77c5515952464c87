package daemons

import (
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
)

// TestRejectingNodes: whether a node rejects the agents is judged by its last task that was tried, since a Swarm
// retries at once and a newer one usually exists.
func TestRejectingNodes(t *testing.T) {
	updated := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	missing := "No such image: " + images.ProgramRepository + ":0a1b"
	type try struct {
		after time.Duration // after the update
		state swarm.TaskState
		err   string
	}
	rejected := try{time.Second, swarm.TaskStateRejected, missing}
	for name, test := range map[string]struct {
		tries []try
		want  bool
	}{
		"it has not been tried":   {nil, false},
		"it was rejected":         {[]try{rejected}, true},
		"another one is prepared": {[]try{rejected, {2 * time.Second, swarm.TaskStatePreparing, ""}}, true},
		"another one waits":       {[]try{rejected, {2 * time.Second, swarm.TaskStateReady, ""}}, true},
		"another one runs":        {[]try{rejected, {2 * time.Second, swarm.TaskStateRunning, ""}}, false},
		"another one ran":         {[]try{rejected, {2 * time.Second, swarm.TaskStateFailed, "exit 1"}}, false},
		"it was rejected before":  {[]try{{-time.Second, swarm.TaskStateRejected, missing}}, false},
		"it was rejected before, anew": {
			[]try{{-time.Second, swarm.TaskStateRejected, missing}, {time.Second, swarm.TaskStateNew, ""}}, false,
		},
		"its network was not there yet": {
			[]try{{time.Second, swarm.TaskStateRejected, "network trainyard-lab not found"}}, false,
		},
		"it ran before it was rejected":  {[]try{{-time.Second, swarm.TaskStateRunning, ""}, rejected}, true},
		"it was rejected once, then ran": {[]try{rejected, {2 * time.Second, swarm.TaskStateComplete, ""}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			service := swarm.Service{Spec: swarm.ServiceSpec{TaskTemplate: swarm.TaskSpec{
				ContainerSpec: &swarm.ContainerSpec{Image: images.ProgramRepository + ":0a1b"},
			}}}
			service.UpdatedAt = updated
			var tasks []swarm.Task
			for _, try := range test.tries {
				task := swarm.Task{NodeID: "node2", Status: swarm.TaskStatus{State: try.state, Err: try.err}}
				task.CreatedAt = updated.Add(try.after)
				tasks = append(tasks, task)
			}
			if got := rejectingNodes(service, tasks); slices.Contains(got, "node2") != test.want || len(got) > 1 {
				t.Errorf("%v reject it", got)
			}
		})
	}
}
