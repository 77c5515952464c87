package members

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestObserveMember(t *testing.T) {
	const (
		running  = swarm.TaskStateRunning
		shutdown = swarm.TaskStateShutdown
		failed   = swarm.TaskStateFailed
	)
	onFailure := domain.Role{}.RestartRule()
	never := domain.RestartRule{Condition: domain.RestartNever}
	byGroup := domain.RestartRule{Condition: domain.RestartByGroup}
	type seen struct {
		State    domain.State
		Restarts int
		Code     int // -1 if there is none
		Error    string
		Stopped  domain.StopReason
		// Unstarted means that it could not even be started.
		Unstarted bool
	}
	for name, c := range map[string]struct {
		rule   domain.RestartRule
		labels map[string]string
		tasks  func(h *history)
		want   seen
	}{
		"staged": {
			onFailure, map[string]string{spec.LabelStaged: "true"}, func(*history) {},
			seen{State: domain.StatePending, Code: -1},
		},
		"no task": {onFailure, nil, func(*history) {}, seen{State: domain.StatePending, Code: -1}},
		"unplaced": {
			onFailure, nil, func(h *history) { h.unplaced("no suitable node") },
			seen{State: domain.StatePending, Code: -1, Error: "no suitable node"},
		},
		"starting": {
			onFailure, nil, func(h *history) { h.task(2, running, swarm.TaskStatePreparing, 0, "") },
			seen{State: domain.StatePending, Code: -1},
		},
		"running": {
			onFailure, nil, func(h *history) { h.task(2, running, running, 0, "") },
			seen{State: domain.StateRunning, Code: -1},
		},
		"mended, no task yet": {onFailure, nil, func(h *history) {
			h.task(2, running, running, 0, "")
			h.tasks[0].Spec.ContainerSpec.Args = []string{"--as-somebody-else-had-it"}
		}, seen{State: domain.StateRestarting, Code: -1}},
		"moved back, no task yet": {onFailure, nil, func(h *history) {
			h.task(2, running, running, 0, "")
			h.tasks[0].NodeID, h.tasks[0].Spec.Placement = "node2", &swarm.Placement{
				Constraints: []string{"node.id==node2"},
			}
		}, seen{State: domain.StateRestarting, Code: -1}},
		"free to be elsewhere, and where it should be": {onFailure, nil, func(h *history) {
			h.task(2, running, running, 0, "")
			h.tasks[0].Spec.Placement = nil
		}, seen{State: domain.StateRunning, Code: -1}},
		"asked to end": {onFailure, nil,
			func(h *history) { h.task(2, shutdown, running, 0, "").task(2, "ready", swarm.TaskStateReady, 0, "") },

			seen{State: domain.StateRestarting, Code: -1}},
		"tasks of earlier runs don't count": {
			onFailure, nil, func(h *history) { h.task(1, shutdown, failed, 3, "") },
			seen{State: domain.StatePending, Code: -1},
		},
		"completed": {
			onFailure, nil, func(h *history) { h.task(2, shutdown, swarm.TaskStateComplete, 0, "") },
			seen{State: domain.StateCompleted},
		},
		"failed for good": {onFailure, nil,
			func(h *history) { h.task(2, shutdown, failed, 126, "task: non-zero exit (126)") },

			seen{State: domain.StateFailed, Code: 126, Error: "exit code 126, which is final"}},
		"no such command": {onFailure, nil, func(h *history) { h.task(2, shutdown, failed, 127, "no such file") },
			seen{State: domain.StateFailed, Code: 127, Error: "exit code 127, which is final: no such file"}},
		"could not be started": {onFailure, map[string]string{spec.LabelRestarts: "6"},
			func(h *history) { h.task(2, shutdown, failed, 128, "error setting rlimit") },

			seen{
				State: domain.StateFailed, Restarts: 6, Code: 128,
				Error: "exit code 128, after 6 restarts: error setting rlimit",
			}},
		"could not be started, to be restarted": {onFailure, nil, func(h *history) {
			h.task(2, shutdown, failed, 128, "starting container failed: OCI runtime create failed")
		},
			seen{
				State: domain.StateRestarting, Code: 128,
				Error: "exit code 128: starting container failed: OCI runtime create failed", Unstarted: true,
			}},
		"could not be started, busy": {onFailure, nil, func(h *history) {
			h.task(2, shutdown, failed, 128,
				"starting container failed: unable to remount dir as readonly: device or resource busy")
		},
			seen{State: domain.StateRestarting, Code: 128,
				Error: "exit code 128: starting container failed: unable to remount dir as readonly: device or resource busy"}},
		"not well, to be restarted": {onFailure, nil,
			func(h *history) { h.task(2, shutdown, failed, 137, "task: non-zero exit (137): unhealthy container") },

			seen{
				State: domain.StateRestarting, Code: 137,
				Error: "exit code 137 (signal 9): task: non-zero exit (137): unhealthy container",
			}},
		"could not be started, being restarted": {onFailure,
			map[string]string{spec.LabelRestarts: "1", spec.LabelRestarted: "task1"},
			func(h *history) {
				h.task(2, shutdown, failed, 128, "starting container failed: OCI runtime create failed")
				h.task(2, running, swarm.TaskStateStarting, 0, "")
			},
			seen{State: domain.StateRestarting, Restarts: 1, Code: 128}},
		"to be restarted": {onFailure, nil, func(h *history) { h.task(2, shutdown, failed, 137, "") },
			seen{State: domain.StateRestarting, Code: 137, Error: "exit code 137 (signal 9)"}},
		"attempts used up": {onFailure, map[string]string{spec.LabelRestarts: "6"},
			func(h *history) { h.task(2, shutdown, failed, 137, "") },

			seen{
				State: domain.StateFailed, Restarts: 6, Code: 137, Error: "exit code 137 (signal 9), after 6 restarts",
			}},
		"restart ordered, no task yet": {onFailure,
			map[string]string{spec.LabelRestarts: "6", spec.LabelRestarted: "task1"},
			func(h *history) { h.task(2, shutdown, failed, 137, "") },

			seen{
				State: domain.StateRestarting, Restarts: 6, Code: 137,
				Error: "exit code 137 (signal 9), after 6 restarts",
			}},
		"being restarted": {onFailure, map[string]string{spec.LabelRestarts: "1", spec.LabelRestarted: "task1"},
			func(h *history) {
				h.task(2, shutdown, failed, 137, "").task(2, running, swarm.TaskStateStarting, 0, "")
			},
			seen{State: domain.StateRestarting, Restarts: 1, Code: 137}},
		"restarted": {onFailure, map[string]string{spec.LabelRestarts: "1", spec.LabelRestarted: "task1"},
			func(h *history) { h.task(2, shutdown, failed, 137, "").task(2, running, running, 0, "") },
			seen{State: domain.StateRunning, Restarts: 1, Code: -1}},
		"rejected": {onFailure, nil,
			func(h *history) { h.task(2, shutdown, swarm.TaskStateRejected, 0, "No such image") },

			seen{
				State: domain.StateRestarting, Code: 125, Error: "could not be started: No such image", Unstarted: true,
			}},
		"rejected, attempts used up": {onFailure, map[string]string{spec.LabelRestarts: "6"},
			func(h *history) { h.task(2, shutdown, swarm.TaskStateRejected, 0, "No such image") },

			seen{
				State: domain.StateFailed, Restarts: 6, Code: 125, Error: "could not be started: No such image",
				Unstarted: true,
			}},
		"rejected, never restarted": {never, nil,
			func(h *history) { h.task(2, shutdown, swarm.TaskStateRejected, 0, "No such image") },

			seen{State: domain.StateFailed, Code: 125, Error: "could not be started: No such image", Unstarted: true}},
		"rejected for an image with such a name": {onFailure, nil,
			func(h *history) {
				h.task(2, shutdown, swarm.TaskStateRejected, 0, "No such image: lab/neural-network:1")
			},

			seen{
				State: domain.StateRestarting, Code: 125,
				Error: "could not be started: No such image: lab/neural-network:1", Unstarted: true,
			}},
		"rejected by a host that has just joined": {onFailure, nil,
			func(h *history) {
				h.task(2, shutdown, swarm.TaskStateRejected, 0,
					"error while removing network: unknown network trainyard-lab id u274p4rcrld0kelw09ljk48yf")
			},

			seen{
				State: domain.StateRestarting, Code: 125,
				Error: "could not be started: error while removing network: unknown network trainyard-lab id " +
					"u274p4rcrld0kelw09ljk48yf",
			}},
		"ended by the Swarm, with exit code 0": {onFailure, nil,
			func(h *history) { h.task(2, shutdown, shutdown, 0, "") },

			seen{
				State: domain.StateRestarting, Code: 137,
				Error: "stopped by the Swarm, for example because its host was drained or lost",
			}},
		"ended by the Swarm, attempts used up": {onFailure, map[string]string{spec.LabelRestarts: "6"},
			func(h *history) { h.task(2, shutdown, swarm.TaskStateOrphaned, 0, "") },

			seen{
				State: domain.StateRestarting, Restarts: 6, Code: 137,
				Error: "stopped by the Swarm, for example because its host was drained or lost",
			}},
		"ended by the Swarm, never restarted": {never, nil, func(h *history) { h.task(2, shutdown, shutdown, 0, "") },
			seen{
				State: domain.StateFailed, Code: 137,
				Error: "stopped by the Swarm, for example because its host was drained or lost",
			}},
		"ended by the Swarm, restarted by its group": {byGroup, nil,
			func(h *history) { h.task(2, shutdown, shutdown, 0, "") },

			seen{
				State: domain.StateFailed, Code: 137,
				Error: "stopped by the Swarm, for example because its host was drained or lost",
			}},
		"being stopped": {onFailure, map[string]string{spec.LabelStop: "completed"},
			func(h *history) { h.task(2, shutdown, running, 0, "").unplaced("no suitable node") },

			seen{State: domain.StateRunning, Code: -1}},
		"being stopped while it starts": {onFailure, map[string]string{spec.LabelStop: "completed"},
			func(h *history) { h.task(2, shutdown, swarm.TaskStateStarting, 0, "").unplaced("no suitable node") },
			seen{State: domain.StatePending, Code: -1, Error: "no suitable node"}},
		"stopped": {onFailure, map[string]string{spec.LabelStop: "completed"},
			func(h *history) { h.task(2, shutdown, shutdown, 0, "").unplaced("no suitable node") },

			seen{State: domain.StateStopped, Stopped: domain.StopCompleted}},
		"stopped though never to be restarted": {never, map[string]string{spec.LabelStop: "failed"},
			func(h *history) { h.task(2, shutdown, shutdown, 143, "").unplaced("") },

			seen{State: domain.StateStopped, Code: 143, Stopped: domain.StopFailed}},
		"stopped, and rejected as its node no longer meets the constraints": {onFailure,
			map[string]string{spec.LabelStop: "completed"},
			func(h *history) {
				h.task(2, shutdown, swarm.TaskStateRejected, 0,
					"assigned node no longer meets constraints").unplaced("")
			},
			seen{State: domain.StateStopped, Code: -1, Stopped: domain.StopCompleted}},
		"stopped, and its network was gone": {onFailure, map[string]string{spec.LabelStop: "completed"},
			func(h *history) {
				h.task(2, shutdown, failed, 0, "error while removing network: unknown network").unplaced("")
			},
			seen{State: domain.StateStopped, Stopped: domain.StopCompleted}},
		"failed before it was stopped": {onFailure, map[string]string{spec.LabelStop: "failed"},
			func(h *history) { h.task(2, shutdown, failed, 127, "no such file").unplaced("") },
			seen{State: domain.StateFailed, Code: 127, Error: "exit code 127, which is final: no such file"}},
		"stopped before it started": {onFailure, map[string]string{spec.LabelStop: "deadline"},
			func(h *history) { h.unplaced("no suitable node") },

			seen{State: domain.StateStopped, Code: -1, Stopped: domain.StopDeadline}},
		"completed before it was stopped": {onFailure, map[string]string{spec.LabelStop: "completed"},
			func(h *history) { h.task(2, shutdown, swarm.TaskStateComplete, 0, "").unplaced("") },
			seen{State: domain.StateCompleted}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, c.rule, c.labels)
			c.tasks(h)
			observed, err := h.view(ready).observe("job")
			if err != nil || len(observed) != 1 {
				t.Fatalf("observed %v (%v)", observed, err)
			}
			o := observed[0]
			got := seen{
				State: o.State, Restarts: o.Restarts, Code: -1, Error: o.LastError, Stopped: o.StopReason,
				Unstarted: o.Unstarted,
			}
			if o.ExitCode != nil {
				got.Code = *o.ExitCode
			}
			if got.Error != "" && c.want.Error == "" && c.want.State == domain.StateStopped {
				t.Errorf("a stopped member has the error %q", got.Error)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the member (-want +got):\n%s", diff)
			}
			if o.Live != nil || o.HostTrouble != "" {
				t.Errorf("changed by others: %+v, trouble with its host: %q", o.Live, o.HostTrouble)
			}
		})
	}
}

func TestIsPassing(t *testing.T) {
	for err, want := range map[string]bool{
		"":              false,
		"No such image": false,
		"OCI runtime create failed: exec: \"train\": executable file not found in $PATH": false,

		`starting container failed: exec: "network": executable file not found in $PATH: unknown`: false,
		`exec: "network": permission denied: unknown`:                                             false,

		"No such image: lab/neural-network:1":          false,
		"No such image: lab/network:1":                 false,
		"No such image: network:1":                     false,
		"No such image: registry/network/train:latest": false,

		"unable to remount dir as readonly: device or resource busy":                                     true,
		"OCI runtime create failed: unable to remount dir as readonly: device or resource busy: unknown": true,

		"network trainyard-lab not found":                                            true,
		"error while removing network: unknown network trainyard-lab id u274p4rcrld": true,
		"error while removing network: context canceled":                             true,
		"error while removing network: unknown network":                              true,
		`could not find "network"`:                                                   true,

		"context deadline exceeded": true,
		"failed to create task for container: context deadline exceeded: unknown": true,
		"rpc error: code = DeadlineExceeded desc = context deadline exceeded":     true,
	} {
		if got := isPassing(err); got != want {
			t.Errorf("%q passes: %t, want %t", err, got, want)
		}
	}
}

func TestObserveTrouble(t *testing.T) {
	at := func(state swarm.NodeState, availability swarm.NodeAvailability) swarm.Node {
		return swarm.Node{Status: swarm.NodeStatus{State: state}, Spec: swarm.NodeSpec{Availability: availability}}
	}
	for want, node := range map[string]swarm.Node{
		"":                     ready,
		"host gpu1 is down":    at(swarm.NodeStateDown, swarm.NodeAvailabilityActive),
		"host gpu1 is drained": at(swarm.NodeStateReady, swarm.NodeAvailabilityDrain),
		"host gpu1 is paused":  at(swarm.NodeStateReady, swarm.NodeAvailabilityPause),
	} {
		h := newHistory(t, domain.Role{}.RestartRule(), nil).task(2, swarm.TaskStateRunning, swarm.TaskStateRunning, 0,
			"")
		observed, err := h.view(node).observe("")
		if err != nil || len(observed) != 1 || observed[0].HostTrouble != want {
			t.Errorf("%q: observed %+v (%v)", want, observed, err)
		}
	}
	h := newHistory(t, domain.Role{}.RestartRule(), nil).task(2, swarm.TaskStateRunning, swarm.TaskStateRunning, 0, "")
	v := h.view(ready)
	v.nodes = dockerapi.Nodes{}
	if observed, err := v.observe(""); err != nil || observed[0].HostTrouble != "host gpu1 is not part of the Swarm" {
		t.Errorf("on a host that is gone: %+v (%v)", observed, err)
	}
}

// TestObserveLeaving: a member exists until its last task has ended, unless its host can't report that.
func TestObserveLeaving(t *testing.T) {
	for state, want := range map[swarm.NodeState]int{
		swarm.NodeStateReady: 1, swarm.NodeStateUnknown: 1, swarm.NodeStateDown: 0,
	} {
		h := newHistory(t, domain.Role{}.RestartRule(), nil).task(2, swarm.TaskStateRemove, swarm.TaskStateRunning, 0,
			"")
		v := h.view(swarm.Node{Status: swarm.NodeStatus{State: state}})
		v.services = nil
		observed, err := v.observe("job")
		if err != nil || len(observed) != want {
			t.Errorf("on a node that is %s: observed %v (%v)", state, observed, err)
		}
	}
}

// TestInstances: a member's container is known from its start until its end, even before the first health check result.
func TestInstances(t *testing.T) {
	const runs, shutdown = swarm.TaskStateRunning, swarm.TaskStateShutdown
	for name, test := range map[string]struct {
		desired, state swarm.TaskState
		status         *swarm.ContainerStatus
		want           bool
	}{
		"it runs": {runs, runs, &swarm.ContainerStatus{ContainerID: "own"}, true},
		"its health is not known yet": {
			runs, swarm.TaskStateStarting, &swarm.ContainerStatus{ContainerID: "own"}, true,
		},
		"it is to end": {shutdown, runs, &swarm.ContainerStatus{ContainerID: "own"}, true},
		"it has not been started": {
			swarm.TaskStateReady, swarm.TaskStateReady, &swarm.ContainerStatus{ContainerID: "own"}, false,
		},
		"it has ended": {
			shutdown, swarm.TaskStateComplete, &swarm.ContainerStatus{ContainerID: "own"}, false,
		},
		"it is not known":             {runs, swarm.TaskStateStarting, nil, false},
		"it is not known by its name": {runs, swarm.TaskStateStarting, &swarm.ContainerStatus{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, domain.Role{}.RestartRule(), nil)
			h.task(1, shutdown, swarm.TaskStateFailed, 1, "").task(2, test.desired, test.state, 0, "")
			h.tasks[1].Status.ContainerStatus = test.status
			found, err := h.view(ready).observe("")
			swarmtest.Must(t, err)
			if len(found) != 1 || found[0].Instance != "" != test.want || test.want && found[0].Instance != "own" {
				t.Errorf("observed is %+v, want it to have its container: %v", found, test.want)
			}
		})
	}
}
