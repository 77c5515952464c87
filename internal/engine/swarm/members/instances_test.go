package members

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// poolOf returns the service of the workers of a group "job" in run 2, with this number of replicas.
func poolOf(t testing.TB, n int, rule domain.RestartRule, labels map[string]string) *history {
	t.Helper()
	h := newHistory(t, rule, nil)
	member := domain.MemberSpec{
		Scheduling: domain.SchedulingEngine, Shared: true,
		Cluster: "lab", Group: "job", Role: "worker", Address: "job-worker:9000", Hash: "hash", Run: 2,
		Image: "trainer:1", Restart: rule, Interchangeable: true,
	}
	rendered, err := spec.Render(member, spec.Target{Network: "net", Nodes: map[string]string{"gpu1": "node1"}}, n)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(rendered.Labels, labels)
	if reason := labels[spec.LabelStop]; reason != "" {
		rendered = spec.Stopped(rendered, domain.StopReason(reason))
	}
	h.service.Spec = rendered
	return h
}

// slot adds a task of a slot, of a run, in a state.
func (h *history) slot(number, run int, desired, state swarm.TaskState, code int, message string) *history {
	h.task(run, desired, state, code, message)
	task := &h.tasks[len(h.tasks)-1]
	task.Slot = number
	delete(task.Spec.ContainerSpec.Labels, spec.LabelIndex)
	delete(task.Spec.ContainerSpec.Labels, spec.LabelMember)
	return h
}

// ends adds tasks of slot 1 that ended, one after the other.
func (h *history) ends(times int, state swarm.TaskState, code int) *history {
	for range times {
		h.slot(1, 2, swarm.TaskStateShutdown, state, code, "")
	}
	return h
}

// waiting adds a task of a slot that is not on a host yet.
func (h *history) waiting(number int, message string) *history {
	h.slot(number, 2, swarm.TaskStateRunning, swarm.TaskStatePending, 0, message)
	h.tasks[len(h.tasks)-1].NodeID = ""
	return h
}

// TestMembersOfPool: members are the slots in order, without a gap; leaving ones come last.
func TestMembersOfPool(t *testing.T) {
	const running, remove = swarm.TaskStateRunning, swarm.TaskStateRemove
	for name, c := range map[string]struct {
		replicas int
		tasks    func(h *history)
		want     string
	}{
		"as it should be": {
			2, func(h *history) { h.slot(1, 2, running, running, 0, "").slot(2, 2, running, running, 0, "") },
			"0: task1, 1: task2",
		},
		"numbers with gaps": {
			2, func(h *history) { h.slot(7, 2, running, running, 0, "").slot(3, 2, running, running, 0, "") },
			"0: task2, 1: task1",
		},
		"one is yet to come": {2, func(h *history) { h.slot(2, 2, running, running, 0, "") }, "0: task1, 1:"},
		"several of a slot": {1, func(h *history) {
			h.slot(1, 2, swarm.TaskStateShutdown, swarm.TaskStateFailed, 1, "").slot(1, 2, running, running, 0, "")
		}, "0: task1 task2"},
		"the first one leaves": {
			1, func(h *history) { h.slot(1, 2, remove, running, 0, "").slot(2, 2, running, running, 0, "") },
			"0: task2, 1: task1 leaves",
		},
		"all leave":    {0, func(h *history) { h.slot(1, 2, remove, running, 0, "") }, "0: task1 leaves"},
		"none is left": {0, func(*history) {}, "0:"},
	} {
		h := poolOf(t, c.replicas, domain.Role{}.RestartRule(), nil)
		c.tasks(h)
		var got []string
		for _, member := range membersOf(h.service, h.tasks) {
			text := fmt.Sprintf("%d:", member.index)
			for _, task := range member.tasks {
				text += " " + task.ID
			}
			if member.leaving {
				text += " leaves"
			}
			if member.name != fmt.Sprint("job-worker-", member.index) {
				t.Errorf("%s: member %d is called %s", name, member.index, member.name)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, not %q", name, text, c.want)
		}
	}
}

// TestStayingMembers: if the Swarm forgot to remove a task, it is a member beyond the replicas.
func TestStayingMembers(t *testing.T) {
	const running, remove = swarm.TaskStateRunning, swarm.TaskStateRemove
	two := func(h *history) { h.slot(1, 2, running, running, 0, "").slot(2, 2, running, running, 0, "") }
	for name, c := range map[string]struct {
		replicas      int
		tasks         func(h *history)
		removed       string
		staying, kept int
	}{
		"one of two":               {2, two, "job-worker-1", 2, 1},
		"both":                     {2, two, "job-worker-0 job-worker-1", 2, 0},
		"of another role":          {2, two, "job-ps-0", 2, 2},
		"one that has no task yet": {3, two, "job-worker-2", 3, 2},
		"one that was forgotten":   {1, two, "job-worker-1", 2, 1},
		"one that leaves already": {
			1, func(h *history) { h.slot(1, 2, running, running, 0, "").slot(2, 2, remove, running, 0, "") },
			"job-worker-1", 1, 1,
		},
	} {
		h := poolOf(t, c.replicas, domain.Role{}.RestartRule(), nil)
		c.tasks(h)
		removed := map[string]bool{}
		for member := range strings.FieldsSeq(c.removed) {
			removed[member] = true
		}
		if staying, kept := staying(h.service, h.tasks, removed); staying != c.staying || kept != c.kept {
			t.Errorf("%s: %d stay and %d are kept, want %d and %d", name, staying, kept, c.staying, c.kept)
		}
	}
}

func TestObservePool(t *testing.T) {
	const (
		running  = swarm.TaskStateRunning
		shutdown = swarm.TaskStateShutdown
		failed   = swarm.TaskStateFailed
	)
	type seen struct {
		State    domain.State
		Run      int
		Restarts int
		Error    string
		Host     string
		Stopped  domain.StopReason
		Replicas int
		// Unstarted means that an apply which waits for it fails at once.
		Unstarted bool
	}
	once := domain.RestartRule{Condition: domain.RestartOnFailure, MaxAttempts: 1, Final: domain.DefaultFinalExitCodes}
	six, always := domain.Role{}.RestartRule(), domain.RestartRule{Condition: domain.RestartAlways, MaxAttempts: 2}
	never := domain.RestartRule{Condition: domain.RestartNever}
	paused := &swarm.UpdateStatus{
		State: swarm.UpdateStatePaused, Message: "update paused due to failure or early termination of task task2",
	}
	for name, c := range map[string]struct {
		replicas int
		rule     domain.RestartRule
		labels   map[string]string
		update   *swarm.UpdateStatus
		tasks    func(h *history)
		want     []seen
	}{
		"runs": {
			1, once, nil, nil, func(h *history) { h.slot(4, 2, running, running, 0, "") },
			[]seen{{State: domain.StateRunning, Run: 2, Host: "gpu1"}},
		},
		"staged": {
			0, once, map[string]string{spec.LabelStaged: "true"}, nil, func(*history) {},
			[]seen{{State: domain.StatePending}},
		},
		"no task": {1, once, nil, nil, func(*history) {}, []seen{{State: domain.StatePending, Run: 2}}},
		"scaled to none": {
			0, once, nil, nil, func(*history) {}, []seen{{State: domain.StatePending, Run: 2, Replicas: -1}},
		},
		"unplaced": {
			1, once, nil, nil, func(h *history) { h.waiting(1, "no suitable node") },
			[]seen{{State: domain.StatePending, Run: 2, Error: "no suitable node"}},
		},
		"of an earlier run": {
			1, once, nil, nil, func(h *history) { h.slot(1, 1, running, running, 0, "") },
			[]seen{{State: domain.StatePending, Run: 2}},
		},
		"completed": {
			1, once, nil, nil, func(h *history) { h.slot(1, 2, shutdown, swarm.TaskStateComplete, 0, "") },
			[]seen{{State: domain.StateCompleted, Run: 2, Host: "gpu1"}},
		},
		"failed, and about to be tried again": {1, once, nil, nil,
			func(h *history) { h.slot(1, 2, shutdown, failed, 3, "").waiting(1, "") },

			[]seen{{State: domain.StateRestarting, Run: 2}}},
		"failed again": {
			1, once, nil, nil,
			func(h *history) { h.slot(1, 2, shutdown, failed, 3, "").slot(1, 2, shutdown, failed, 3, "") },
			[]seen{
				{State: domain.StateFailed, Run: 2, Restarts: 1, Error: "exit code 3, after 1 restarts", Host: "gpu1"},
			},
		},
		"failed, and the Swarm is about to decide": {
			1, once, nil, nil, func(h *history) { h.slot(1, 2, running, failed, 3, "") },
			[]seen{{State: domain.StateRestarting, Run: 2, Error: "exit code 3", Host: "gpu1"}},
		},
		"given up, with some of its tasks gone": {1, six, nil, nil, func(h *history) { h.ends(5, failed, 3) }, []seen{
			{State: domain.StateFailed, Run: 2, Restarts: 6, Error: "exit code 3, after 6 restarts", Host: "gpu1"},
		}},
		"given up when its host was drained before it started": {1, six, nil, nil, func(h *history) {
			h.ends(6, failed, 3).slot(1, 2, shutdown, shutdown, 0, "")
			h.tasks[6].Status.ContainerStatus = nil
		}, []seen{
			{State: domain.StateFailed, Run: 2, Restarts: 6, Error: "exit code 3, after 6 restarts", Host: "gpu1"},
		}},
		"tried more often, as its service has changed since": {1, six, nil, nil, func(h *history) {
			h.ends(7, failed, 3).waiting(1, "")
		}, []seen{{State: domain.StateRestarting, Run: 2, Restarts: 6}}},
		"ended too often": {1, always, nil, nil, func(h *history) { h.ends(3, swarm.TaskStateComplete, 0) },
			[]seen{{State: domain.StateCompleted, Run: 2, Restarts: 2, Host: "gpu1"}}},
		"ended, and about to be run again": {1, always, nil, nil, func(h *history) {
			h.ends(3, swarm.TaskStateComplete, 0).waiting(1, "")
		}, []seen{{State: domain.StateRestarting, Run: 2, Restarts: 2}}},
		"never tried again": {
			1, never, nil, nil, func(h *history) { h.slot(1, 2, shutdown, failed, 3, "") },
			[]seen{{State: domain.StateFailed, Run: 2, Error: "exit code 3; restart condition is never", Host: "gpu1"}},
		},
		"rejected": {
			1, once, nil, nil, func(h *history) { h.slot(1, 2, running, swarm.TaskStateRejected, 0, "No such image") },
			[]seen{{State: domain.StateRestarting, Run: 2, Error: "could not be started: No such image", Host: "gpu1"}},
		},
		"rejected again": {1, once, nil, nil, func(h *history) {
			h.slot(1, 2, shutdown, swarm.TaskStateRejected, 0, "No such image").slot(1, 2, shutdown,
				swarm.TaskStateRejected, 0, "No such image")
		}, []seen{{
			State: domain.StateFailed, Run: 2, Restarts: 1, Error: "could not be started: No such image", Host: "gpu1",
		}}},
		"stopped": {2, once, map[string]string{spec.LabelStop: "completed"}, nil, func(h *history) {
			h.slot(1, 2, shutdown, shutdown, 0, "").waiting(1, "no suitable node").waiting(2, "no suitable node")
		}, []seen{{
			State: domain.StateStopped, Run: 2, Host: "gpu1", Stopped: domain.StopCompleted,
		}, {State: domain.StateStopped, Run: 2, Stopped: domain.StopCompleted}}},
		"stopped with one that had completed": {2, once, map[string]string{
			spec.LabelStop: "completed",
		}, nil, func(h *history) {
			h.slot(1, 2, shutdown, swarm.TaskStateComplete, 0, "").waiting(1, "no suitable node").slot(2, 2, shutdown,
				running, 0, "")
		}, []seen{
			{State: domain.StateCompleted, Run: 2, Host: "gpu1"}, {State: domain.StateRunning, Run: 2, Host: "gpu1"},
		}},
		"stopped without a task": {
			0, once, map[string]string{spec.LabelStop: "failed"}, nil, func(*history) {},
			[]seen{{State: domain.StateStopped, Run: 2, Stopped: domain.StopFailed, Replicas: -1}},
		},
		"one leaves": {1, once, nil, nil, func(h *history) {
			h.slot(1, 2, swarm.TaskStateRemove, running, 0, "").slot(2, 2, running, running, 0, "")
		},
			[]seen{
				{State: domain.StateRunning, Run: 2, Host: "gpu1"},
				{State: domain.StateRunning, Error: "shutting down"},
			}},
		"an update is paused for the one that failed": {2, never, nil, paused, func(h *history) {
			h.slot(1, 1, running, running, 0, "").slot(2, 2, shutdown, failed, 3, "")
		}, []seen{{State: domain.StatePending, Run: 2}, {
			State: domain.StateFailed, Run: 2, Host: "gpu1",
			Error: "exit code 3; restart condition is never; the Swarm paused the update: " + paused.Message,
		}}},
		"an update is paused for one that is tried again": {2, domain.RestartRule{Condition: domain.RestartOnFailure},
			nil, paused, func(h *history) {
				h.slot(1, 1, running, running, 0, "").slot(2, 2, shutdown, failed, 3, "")
			},
			[]seen{{State: domain.StatePending, Run: 2}, {
				State: domain.StateFailed, Run: 2, Host: "gpu1",
				Error: "exit code 3; the Swarm paused the update: " + paused.Message,
			}}},
		"an update is paused for one that is gone": {1, once, nil,
			&swarm.UpdateStatus{State: swarm.UpdateStatePaused, Message: "of task gone"}, func(h *history) {
				h.slot(1, 1, running, running, 0, "")
			}, []seen{{State: domain.StateFailed, Run: 2, Error: "the Swarm paused the update: of task gone"}}},
		"an update that was paused, and nothing waits": {
			1, once, nil, paused, func(h *history) { h.slot(1, 2, running, running, 0, "") },
			[]seen{{State: domain.StateRunning, Run: 2, Host: "gpu1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := poolOf(t, c.replicas, c.rule, c.labels)
			h.service.UpdateStatus = c.update
			c.tasks(h)
			node := ready
			node.Description.Hostname = "ip-1"
			v := h.view(node)
			v.hosts = map[string]string{"node1": "gpu1"}
			observed, err := v.observe("job")
			if err != nil {
				t.Fatal(err)
			}
			var got []seen
			for _, o := range observed {
				s := seen{
					State: o.State, Run: o.Run, Restarts: o.Restarts, Error: o.LastError, Host: o.Host,
					Stopped: o.StopReason,
				}
				if o.Replicas != nil {
					s.Replicas = *o.Replicas - 1 // distinguishes none from unset
				}
				if o.Address != "job-worker:9000" {
					t.Errorf("%s is at %q", o.Name, o.Address)
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPoolLeaves: while its tasks end, a removed service still has its members.
func TestPoolLeaves(t *testing.T) {
	h := poolOf(t, 2, domain.Role{}.RestartRule(), nil)
	h.slot(2, 2, swarm.TaskStateRemove, swarm.TaskStateRunning, 0, "").slot(5, 2, swarm.TaskStateRemove,
		swarm.TaskStateRunning, 0, "")
	v := h.view(ready)
	v.services = nil
	observed, err := v.observe("job")
	if err != nil || len(observed) != 2 || observed[0].Name != "job-worker-0" || observed[1].Name != "job-worker-1" {
		t.Errorf("observed %v (%v)", observed, err)
	}
}

// TestRunningContainers: a member's usage is that of its own container, whatever the number of its slot.
func TestRunningContainers(t *testing.T) {
	h := poolOf(t, 2, domain.Role{}.RestartRule(), nil)
	h.slot(2, 2, swarm.TaskStateShutdown, swarm.TaskStateFailed, 1, "").slot(2, 2, swarm.TaskStateRunning,
		swarm.TaskStateRunning, 0, "").slot(5, 2, swarm.TaskStateRunning, swarm.TaskStateRunning, 0, "")
	observed, err := h.view(ready).observe("")
	swarmtest.Must(t, err)
	got := map[string]string{}
	for _, o := range observed {
		got[o.Name] = o.Instance
	}
	if diff := cmp.Diff(map[string]string{"job-worker-0": "container2", "job-worker-1": "container3"},
		got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
