package daemons

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// keyOf returns the key with this number and age in days, and the nodes that are recorded as having it.
func keyOf(number, days int, nodes ...string) swarm.Secret {
	id := strconv.Itoa(number)
	labels := map[string]string{spec.LabelRevision: id, spec.LabelNodes: strings.Join(nodes, " ")}
	return swarm.Secret{
		ID: id, Meta: swarm.Meta{CreatedAt: time.Now().AddDate(0, 0, -days)},
		Spec: swarm.SecretSpec{Annotations: swarm.Annotations{Name: "key " + id, Labels: labels}},
	}
}

// agentWith is the container specification of an agent with the keys of these numbers.
func agentWith(numbers ...int) *swarm.ContainerSpec {
	container := &swarm.ContainerSpec{}
	for _, number := range numbers {
		container.Secrets = append(container.Secrets, keyReference(keyOf(number, 0)))
	}
	return container
}

// agentOn is the task of an agent with keys on a node.
func agentOn(node string, state, desired swarm.TaskState, numbers ...int) swarm.Task {
	return swarm.Task{
		NodeID: node, Status: swarm.TaskStatus{State: state}, DesiredState: desired,
		Spec: swarm.TaskSpec{ContainerSpec: agentWith(numbers...)},
	}
}

// runsOn is the running task of an agent with keys on a node.
func runsOn(node string, numbers ...int) swarm.Task {
	return agentOn(node, swarm.TaskStateRunning, swarm.TaskStateRunning, numbers...)
}

func TestIsSpent(t *testing.T) {
	view := dockerapi.NewNodes([]swarm.Node{{ID: "a"}, {ID: "b", Status: swarm.NodeStatus{State: swarm.NodeStateDown}}})
	type keys = []swarm.Secret
	type tasks = []swarm.Task
	for name, test := range map[string]struct {
		keys  keys
		tasks tasks
		want  bool
	}{
		"there is none":                         {want: true},
		"all nodes are there, one of them down": {keys: keys{keyOf(1, 1, "a", "b")}},
		"a node has left":                       {keys: keys{keyOf(1, 1, "a", "b", "left")}, want: true},
		"a node has left before it was noted":   {keys: keys{keyOf(1, 1)}, tasks: tasks{runsOn("left", 1)}, want: true},
		"a node with the old key has left":      {keys: keys{keyOf(1, 2, "a", "left"), keyOf(2, 1, "a")}},
		"a task of the old key was left": {
			keys: keys{keyOf(1, 2), keyOf(2, 1)}, tasks: tasks{runsOn("left", 1)},
		},
		"a task has no node yet":     {keys: keys{keyOf(1, 1)}, tasks: tasks{runsOn("", 1)}},
		"it is some months old":      {keys: keys{keyOf(1, 300, "a")}},
		"it is more than a year old": {keys: keys{keyOf(1, 366, "a")}, want: true},
		"the old one is":             {keys: keys{keyOf(1, 366, "a"), keyOf(2, 1, "a")}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isSpent(test.keys, test.tasks, view, time.Now()); got != test.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

// TestKeysWanted hands out key 3: first beside the old ones, and alone once all agents that can get it have it.
func TestKeysWanted(t *testing.T) {
	const running, shutdown = swarm.TaskStateRunning, swarm.TaskStateShutdown
	const active, paused = swarm.NodeAvailabilityActive, swarm.NodeAvailabilityPause
	node := func(id string, state swarm.NodeState, availability swarm.NodeAvailability) swarm.Node {
		spec := swarm.NodeSpec{Availability: availability}
		return swarm.Node{ID: id, Status: swarm.NodeStatus{State: state}, Spec: spec}
	}
	view := dockerapi.NewNodes([]swarm.Node{
		node("a", swarm.NodeStateReady, active), node("b", swarm.NodeStateReady, active),
		node("down", swarm.NodeStateDown, active), node("paused", swarm.NodeStateReady, paused),
	})
	type numbers = []int
	type tasks = []swarm.Task
	for name, test := range map[string]struct {
		has   numbers
		tasks tasks
		// want is nil if nothing changes, and then unused are the keys to remove.
		want, unused numbers
	}{
		"it is new":                   {has: numbers{2}, tasks: tasks{runsOn("a", 2)}, want: numbers{3, 2}},
		"another is being handed out": {has: numbers{2, 1}, want: numbers{3, 2, 1}},
		"somebody took all":           {want: numbers{3}},
		"no agent has it": {
			has: numbers{3, 2}, tasks: tasks{runsOn("a", 2), runsOn("b", 2)}, unused: numbers{1},
		},
		"one lacks it": {has: numbers{3, 2}, tasks: tasks{runsOn("a", 3, 2), runsOn("b", 2)}, unused: numbers{1}},
		"one is starting without it": {
			has: numbers{3, 2}, tasks: tasks{runsOn("a", 3, 2), agentOn("b", swarm.TaskStatePreparing, running, 2)},
			unused: numbers{1},
		},
		"all have it": {has: numbers{3, 2}, tasks: tasks{runsOn("a", 3, 2), runsOn("b", 3, 2)}, want: numbers{3}},
		"those without it have ended": {
			has: numbers{3, 2}, tasks: tasks{runsOn("a", 3, 2), agentOn("b", shutdown, shutdown, 2)}, want: numbers{3},
		},
		"one without it is ending": {
			has: numbers{3, 2}, tasks: tasks{runsOn("a", 3, 2), agentOn("b", running, shutdown, 2)}, want: numbers{3},
		},
		"those that can't get it lack it": {
			has:   numbers{3, 2},
			tasks: tasks{runsOn("a", 3, 2), runsOn("down", 2), runsOn("paused", 2), runsOn("left", 2)},
			want:  numbers{3},
		},
		"it is alone": {has: numbers{3}, tasks: tasks{runsOn("a", 3)}, unused: numbers{1, 2}},
		"it is alone, and an agent is ending": {
			has: numbers{3}, tasks: tasks{agentOn("a", running, shutdown, 3, 2)}, unused: numbers{1},
		},
		"it is alone, and a node is down": {
			has: numbers{3}, tasks: tasks{agentOn("down", running, shutdown, 2)}, unused: numbers{1, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			keys := []swarm.Secret{keyOf(1, 0), keyOf(2, 0), keyOf(3, 0)}
			service := swarm.Service{
				Spec: swarm.ServiceSpec{TaskTemplate: swarm.TaskSpec{ContainerSpec: agentWith(test.has...)}},
			}
			got, change := keysWanted(service, test.tasks, view, keys)
			if change != (test.want != nil) {
				t.Fatalf("there is a change: %t", change)
			}
			if change {
				if diff := cmp.Diff(agentWith(test.want...).Secrets, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			var unused numbers
			for _, key := range unusedKeys(service, test.tasks, view, keys) {
				unused = append(unused, keyNumber(key))
			}
			if diff := cmp.Diff(test.unused, unused); diff != "" {
				t.Errorf("unused (-want +got):\n%s", diff)
			}
		})
	}
}
