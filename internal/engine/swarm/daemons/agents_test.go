package daemons

import (
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestRunningAgents: an agent is queried in its task's container, at its task's address on the cluster's network, and
// only while the task runs.
func TestRunningAgents(t *testing.T) {
	service := func(id, name string) swarm.Service {
		labels := map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindAgent}
		return swarm.Service{
			ID: id, Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: name, Labels: labels}},
		}
	}
	on := func(network string, addresses ...string) swarm.NetworkAttachment {
		named := swarm.NetworkSpec{Annotations: swarm.Annotations{Name: network}}
		return swarm.NetworkAttachment{Network: swarm.Network{Spec: named}, Addresses: addresses}
	}
	task := func(service, node string, age time.Duration, state swarm.TaskState, container string) swarm.Task {
		return swarm.Task{
			ServiceID: service, NodeID: node, Meta: swarm.Meta{CreatedAt: time.Now().Add(-age)},
			Status: swarm.TaskStatus{
				State: state, ContainerStatus: &swarm.ContainerStatus{ContainerID: container},
			},
			NetworksAttachments: []swarm.NetworkAttachment{
				on("other", "10.1.0.7/24"), on(spec.NetworkName("lab"), "10.0.0.7/24"),
			},
		}
	}
	unaddressed := task("agents", "g", time.Minute, swarm.TaskStateRunning, "on g")
	unaddressed.NetworksAttachments = []swarm.NetworkAttachment{on("other", "10.1.0.8/24"), on(spec.NetworkName("lab"))}
	services := []swarm.Service{
		service("member", "lab-job-worker-0"), service("agents", spec.ResidentName("lab", spec.KindAgent)),
		service("others", spec.ResidentName("other", spec.KindAgent)),
	}
	tasks := []swarm.Task{
		task("agents", "a", time.Hour, swarm.TaskStateFailed, "failed"),
		task("agents", "a", time.Minute, swarm.TaskStateRunning, "on a"),
		task("agents", "b", time.Minute, swarm.TaskStateStarting, "starts"),
		task("agents", "c", time.Minute, swarm.TaskStateRunning, ""),
		task("member", "d", time.Minute, swarm.TaskStateRunning, "a member"),
		task("others", "e", time.Minute, swarm.TaskStateRunning, "of another cluster"),
		{ServiceID: "agents", NodeID: "f", Status: swarm.TaskStatus{State: swarm.TaskStateRunning}},
		unaddressed,
	}
	want := map[string]runningAgent{"a": {"on a", "10.0.0.7"}}
	if diff := cmp.Diff(want, runningAgents("lab", services, dockerapi.TasksByService(tasks)),
		cmp.AllowUnexported(runningAgent{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := runningAgents("lab", services[:1], dockerapi.TasksByService(tasks)); len(found) > 0 {
		t.Errorf("without agents: %v", found)
	}
}

// TestWorthAsking: hosts that are powered off don't use up the time in which others would answer, however many there
// are, and managers come before workers.
func TestWorthAsking(t *testing.T) {
	m := &agentContainer{}
	engines := map[string]client.APIClient{"5": m, "has left": &agentContainer{}}
	nodes := dockerapi.Nodes{}
	for id, state := range map[string]swarm.NodeState{
		"1": swarm.NodeStateDown, "2": swarm.NodeStateUnknown, "3": swarm.NodeStateReady, "4": swarm.NodeStateDown,
		"5": swarm.NodeStateReady, "6": swarm.NodeStateReady,
	} {
		nodes[id] = swarm.Node{Status: swarm.NodeStatus{State: state}}
		if id != "5" {
			engines[id] = &agentContainer{}
		}
	}
	nodes["6"] = swarm.Node{Status: nodes["6"].Status, Spec: swarm.NodeSpec{Role: swarm.NodeRoleManager}}
	nodes["not reached"] = swarm.Node{Status: swarm.NodeStatus{State: swarm.NodeStateReady}}
	asked := func() []string { return worthAsking(engines, m, nodes) }
	want := []string{"5", "6", "3", "2"}
	if diff := cmp.Diff(want, asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// as a newly elected leader reports it
	nodes["5"] = swarm.Node{Status: swarm.NodeStatus{State: swarm.NodeStateDown}}
	if diff := cmp.Diff(want, asked()); diff != "" {
		t.Errorf("with a manager that answers and is said to be down (-want +got):\n%s", diff)
	}
}

func TestRuntimeAdvice(t *testing.T) {
	const configure = `is "runc" there: to use its GPUs, set it to "nvidia" (`
	for name, test := range map[string]struct {
		runtimes  []string
		byDefault string
		want      string
	}{
		"NVIDIA's is the default": {runtimes: []string{"nvidia", "runc"}, byDefault: "nvidia"},
		"it is not the default": {
			runtimes: []string{"nvidia", "runc"}, byDefault: "runc",
			want: configure + "nvidia-ctk runtime configure --runtime=docker --set-as-default, ",
		},
		"it is not installed": {
			runtimes: []string{"runc"}, byDefault: "runc",
			want: configure + "install NVIDIA's container toolkit, then nvidia-ctk runtime configure ",
		},
		"there are none of any name": {byDefault: "runc", want: configure + "install NVIDIA's container toolkit"},
	} {
		t.Run(name, func(t *testing.T) {
			info := system.Info{DefaultRuntime: test.byDefault, Runtimes: map[string]system.RuntimeWithStatus{}}
			for _, runtime := range test.runtimes {
				info.Runtimes[runtime] = system.RuntimeWithStatus{}
			}
			if got := runtimeAdvice(info); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want it to say %q", got, test.want)
			}
		})
	}
}
