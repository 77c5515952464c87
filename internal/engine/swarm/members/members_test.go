package members

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
)

// TestIsEnding: a task that was told to end is awaited in whatever state it is on its host, and no other is.
func TestIsEnding(t *testing.T) {
	const (
		running  = swarm.TaskStateRunning
		shutdown = swarm.TaskStateShutdown
		remove   = swarm.TaskStateRemove
	)
	for name, c := range map[string]struct {
		node           string
		desired, state swarm.TaskState
		want           bool
	}{
		"runs":                           {"node1", running, running, false},
		"starts":                         {"node1", running, swarm.TaskStateStarting, false},
		"waits for its predecessor":      {"node1", swarm.TaskStateReady, swarm.TaskStateReady, false},
		"waits for a host":               {"", running, swarm.TaskStatePending, false},
		"drained or replaced, runs on":   {"node1", shutdown, running, true},
		"stopped before it was healthy":  {"node1", shutdown, swarm.TaskStateStarting, true},
		"stopped while it was prepared":  {"node1", shutdown, swarm.TaskStatePreparing, true},
		"stopped before it had a host":   {"", shutdown, swarm.TaskStatePending, false},
		"removed, runs on":               {"node1", remove, running, true},
		"stopped, and has ended":         {"node1", shutdown, shutdown, false},
		"failed while it was stopped":    {"node1", shutdown, swarm.TaskStateFailed, false},
		"lost with its host":             {"node1", shutdown, swarm.TaskStateOrphaned, false},
		"removed, and has ended already": {"node1", remove, swarm.TaskStateComplete, false},
	} {
		task := swarm.Task{NodeID: c.node, DesiredState: c.desired, Status: swarm.TaskStatus{State: c.state}}
		if got := isEnding(task); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
