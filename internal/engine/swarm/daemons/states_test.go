package daemons

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// residentTask is a resident's task in a state, on node "n1" unless it is pending.
func residentTask(n int, state swarm.TaskState, message string) swarm.Task {
	task := swarm.Task{
		ServiceID: "controller", NodeID: "n1", DesiredState: swarm.TaskStateRunning,
		Status: swarm.TaskStatus{State: state, Err: message},
	}
	task.CreatedAt = moment.Add(time.Duration(n) * time.Second)
	task.Status.Timestamp = task.CreatedAt
	if state == swarm.TaskStatePending {
		task.NodeID = ""
	}
	return task
}

func TestResidentOfTasks(t *testing.T) {
	const (
		running  = swarm.TaskStateRunning
		rejected = swarm.TaskStateRejected
		noSocket = `invalid mount config for type "bind": bind source path does not exist: /var/run/docker.sock`
	)
	node := ready
	node.ID, node.Description.Hostname, node.Description.Platform.Architecture = "n1", "ip-1", runtime.GOARCH
	image := images.LocalName(images.ProgramRepository, "sha256:1")
	service := swarm.Service{
		ID: "controller", Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: "trainyard-lab-controller"}},
	}
	service.UpdatedAt = moment
	service.Spec.TaskTemplate.ContainerSpec = &swarm.ContainerSpec{
		Image: image, Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/var/run/docker.sock", Target: socketPath}},
	}
	before := residentTask(-5, rejected, "of an earlier version")
	for name, test := range map[string]struct {
		tasks    []swarm.Task
		later    time.Duration // after the previous one
		state    domain.ResidentState
		attempts int
		says     string
	}{
		"no task yet": {state: domain.ResidentStarting},
		"starting": {
			tasks: []swarm.Task{residentTask(1, swarm.TaskStatePreparing, "")}, state: domain.ResidentStarting,
		},
		"running": {
			tasks: []swarm.Task{residentTask(1, rejected, noSocket), residentTask(2, running, "")},
			state: domain.ResidentRunning,
		},
		"running after a crash": {
			tasks: []swarm.Task{residentTask(1, swarm.TaskStateFailed, "exit"), residentTask(2, running, "")},
			state: domain.ResidentStarting,
		},
		"running on after one": {
			tasks: []swarm.Task{residentTask(1, swarm.TaskStateFailed, "exit"), residentTask(2, running, "")},
			later: time.Minute, state: domain.ResidentRunning,
		},
		"rejected": {
			tasks: []swarm.Task{residentTask(1, rejected, noSocket)}, state: domain.ResidentFailing, attempts: 1,
			says: noSocket + `. The controller mounts the host's Docker socket. Run docker context inspect`,
		},
		"rejected for its path": {
			tasks: []swarm.Task{residentTask(1, rejected, noSocket)}, state: domain.ResidentFailing, attempts: 1,
			says: `set hosts["gpu1"].socket to the path after unix://`,
		},
		"rejected, and another is on its way": {tasks: []swarm.Task{
			residentTask(1, rejected, noSocket), residentTask(2, rejected, noSocket),
			residentTask(3, swarm.TaskStateReady, ""),
		},
			state: domain.ResidentFailing, attempts: 2, says: noSocket},
		"again and again": {tasks: []swarm.Task{
			residentTask(1, rejected, noSocket), residentTask(2, rejected, noSocket),
			residentTask(3, rejected, noSocket),
		}, state: domain.ResidentFailing, attempts: 3, says: noSocket},
		"an earlier version": {
			tasks: []swarm.Task{before, residentTask(1, swarm.TaskStatePreparing, "")}, state: domain.ResidentStarting,
		},
		"no image": {
			tasks: []swarm.Task{residentTask(1, rejected, "No such image: "+image)}, state: domain.ResidentFailing,
			attempts: 1, says: "Declare the host with its address",
		},
		"it ends": {
			tasks: []swarm.Task{residentTask(1, swarm.TaskStateFailed, "task: non-zero exit (1)")},
			state: domain.ResidentFailing, attempts: 1,
			says: "task: non-zero exit (1). See docker service logs trainyard-lab-controller.",
		},
		"without a place": {
			tasks: []swarm.Task{residentTask(1, swarm.TaskStatePending, "no suitable node")},
			state: domain.ResidentFailing, says: "no suitable node. Add a manager that can run it",
		},
		"running as it was before": {tasks: []swarm.Task{
			{ServiceID: "controller", DesiredState: swarm.TaskStateRunning, Status: swarm.TaskStatus{State: running}},
		}, state: domain.ResidentStarting},
	} {
		t.Run(name, func(t *testing.T) {
			for i, task := range test.tasks {
				if name != "running as it was before" {
					task.Spec = service.Spec.TaskTemplate
					test.tasks[i] = task
				}
			}
			cluster := domain.Cluster{
				Name: "lab", Agent: domain.Agent{Disabled: true}, Hosts: map[string]domain.Host{"gpu1": {ID: "n1"}},
			}
			r := residentView{
				cluster: cluster, controller: &service,
				nodes: dockerapi.NewNodes([]swarm.Node{node}), hosts: dockerapi.HostsOf(cluster),
				tasks: map[string][]swarm.Task{"controller": test.tasks}, now: moment.Add(time.Second + test.later),
			}
			got := r.residents()
			if got.Controller.State != test.state || got.Controller.Attempts != test.attempts || got.Agents != nil {
				t.Errorf("found %+v", got)
			}
			if why := got.Controller.Why(); (test.says == "") != (got.Controller.Error == "") ||
				!strings.Contains(why, test.says) {
				t.Errorf("it says %q, want %q", why, test.says)
			}
		})
	}
}

func TestAgentsOfHosts(t *testing.T) {
	node := func(id string, change func(*swarm.Node)) swarm.Node {
		n := ready
		n.ID, n.Description.Platform.Architecture = id, runtime.GOARCH
		if change != nil {
			change(&n)
		}
		return n
	}
	agent := swarm.Service{ID: "agent"}
	agent.Spec.TaskTemplate.ContainerSpec = &swarm.ContainerSpec{
		Image: images.LocalName(images.ProgramRepository, "sha256:1"),
	}
	agent.Spec.TaskTemplate.Placement = spec.KeepOff(nil, []string{"without", "unknown", "arm"})
	runs := residentTask(1, swarm.TaskStateRunning, "")
	runs.NodeID, runs.Spec = "runs", agent.Spec.TaskTemplate
	r := residentView{
		cluster: domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{
			"runs": {ID: "runs"}, "starts": {ID: "starts"}, "down": {ID: "down"},
			"without": {ID: "without", Address: "ssh://without"}, "unknown": {ID: "unknown"},
			"arm": {ID: "arm", Address: "ssh://arm"},
		}},
		nodes: dockerapi.NewNodes([]swarm.Node{
			node("runs", nil), node("starts", nil), node("without", nil), node("unknown", nil),
			node("down", func(n *swarm.Node) { n.Status.State = swarm.NodeStateDown }),
			node("arm", func(n *swarm.Node) { n.Description.Platform.Architecture = "riscv64" }),
		}),
		agent: &agent, tasks: map[string][]swarm.Task{"agent": {runs}},
	}
	found := r.residents()
	for name, want := range map[string]struct {
		state   domain.ResidentState
		excused bool
		says    string
	}{
		"runs":    {domain.ResidentRunning, false, ""},
		"starts":  {domain.ResidentStarting, false, "it is starting"},
		"down":    {domain.ResidentAbsent, true, "host down is down"},
		"without": {domain.ResidentAbsent, false, "the host lacks Trainyard's image. Loading it failed"},
		"unknown": {domain.ResidentAbsent, true, `hosts = { unknown = { address = "ssh://…" } }`},
		"arm":     {domain.ResidentAbsent, false, "the host is riscv64: set the provider's docker.controller_image"},
	} {
		got := found.Agents[name]
		if got.State != want.state || got.Excused != want.excused || !strings.Contains(got.Why(), want.says) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	missing := strings.Join(found.Missing(), "\n")
	for _, says := range []string{
		"The controller isn't running: service trainyard-lab-controller is missing",
		"The agent isn't running on host without: ", "The agent isn't running on host arm: ",
	} {
		if !strings.Contains(missing, says) {
			t.Errorf("%q is not among what is missing:\n%s", says, missing)
		}
	}
	if strings.Contains(missing, "host down") || strings.Contains(missing, "host unknown:") {
		t.Errorf("what nobody expects is missing:\n%s", missing)
	}
	r.agent = nil
	if got := r.residents().MissingAgents("runs", "down"); len(got) != 1 ||
		!strings.Contains(got[0],
			"The agents aren't running on hosts down, runs: service trainyard-lab-agent is missing") {
		t.Errorf("without the service: %q", got)
	}
}

var (
	moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ready  = swarm.Node{
		Status: swarm.NodeStatus{State: swarm.NodeStateReady},
		Spec:   swarm.NodeSpec{Availability: swarm.NodeAvailabilityActive},
	}
)
