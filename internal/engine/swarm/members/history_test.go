package members

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// moment is when the first task of these tests was created; each further one is a second later.
var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// history creates the tasks of a service.
type history struct {
	service swarm.Service
	tasks   []swarm.Task
}

// workerOf returns the specification of worker 0 of a group "job" in run 2.
func workerOf(rule domain.RestartRule) domain.MemberSpec {
	return domain.MemberSpec{
		Cluster: "lab", Group: "job", Role: "worker", Name: "job-worker-0", Host: "gpu1", Address: "job-worker-0:9000",
		Hash: "hash", Run: 2, Image: "trainer:1", Restart: rule,
	}
}

// newHistory returns the service of that worker.
func newHistory(t testing.TB, rule domain.RestartRule, labels map[string]string) *history {
	t.Helper()
	in := spec.Target{Network: "net", Nodes: map[string]string{"gpu1": "node1"}}
	rendered, err := spec.Render(workerOf(rule), in, 1)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(rendered.Labels, labels)
	if reason := labels[spec.LabelStop]; reason != "" {
		rendered = spec.Stopped(rendered, domain.StopReason(reason))
	}
	return &history{service: swarm.Service{ID: "service", Spec: rendered}}
}

// task adds a task of a run in a state.
func (h *history) task(run int, desired, state swarm.TaskState, code int, message string) *history {
	n := len(h.tasks) + 1
	at := moment.Add(time.Duration(n) * time.Second)
	task := swarm.Task{
		ID: "task" + strconv.Itoa(n), ServiceID: h.service.ID, NodeID: "node1", Slot: 1, DesiredState: desired,
		Status: swarm.TaskStatus{State: state, Err: message, Timestamp: at.Add(time.Second / 2)},
	}
	task.CreatedAt = at
	task.Spec = h.service.Spec.TaskTemplate
	ran := *task.Spec.ContainerSpec
	ran.Labels = maps.Clone(ran.Labels)
	ran.Labels[spec.LabelRun] = strconv.Itoa(run)
	task.Spec.ContainerSpec = &ran
	switch state {
	case swarm.TaskStateRunning, swarm.TaskStateComplete, swarm.TaskStateFailed, swarm.TaskStateShutdown:
		task.Status.ContainerStatus = &swarm.ContainerStatus{ContainerID: "container" + strconv.Itoa(n), ExitCode: code}
	}
	h.tasks = append(h.tasks, task)
	return h
}

// unplaced adds a task that waits for a host.
func (h *history) unplaced(message string) {
	h.task(2, swarm.TaskStateRunning, swarm.TaskStatePending, 0, message)
	h.tasks[len(h.tasks)-1].NodeID = ""
}

func (h *history) view(node swarm.Node) view {
	node.ID = "node1"
	return view{
		cluster: "lab", services: []swarm.Service{h.service}, seals: spec.SealsOf([]swarm.Service{h.service}),
		tasks: dockerapi.TasksByService(h.tasks), nodes: dockerapi.NewNodes([]swarm.Node{node}),
		known: func() (spec.Lookup, error) { return spec.Lookup{}, nil },
	}
}

var ready = swarm.Node{
	Status: swarm.NodeStatus{State: swarm.NodeStateReady},
	Spec:   swarm.NodeSpec{Availability: swarm.NodeAvailabilityActive},
}
