package members

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestReplaces: only a change that makes the Swarm replace a member that may run needs its end first.
func TestReplaces(t *testing.T) {
	const running, shutdown = swarm.TaskStateRunning, swarm.TaskStateShutdown
	rerun := func(m *domain.MemberSpec) { m.Run = 3 }
	down := swarm.Node{Status: swarm.NodeStatus{State: swarm.NodeStateDown}}
	for name, c := range map[string]struct {
		change func(m *domain.MemberSpec)
		labels map[string]string
		task   [2]swarm.TaskState
		node   swarm.Node
		want   bool
	}{
		"nothing":        {func(*domain.MemberSpec) {}, nil, [2]swarm.TaskState{running, running}, ready, false},
		"another run":    {rerun, nil, [2]swarm.TaskState{running, running}, ready, true},
		"while starting": {rerun, nil, [2]swarm.TaskState{running, swarm.TaskStateStarting}, ready, true},
		"another restart rule": {
			func(m *domain.MemberSpec) { m.Restart.MaxAttempts = 9 }, nil, [2]swarm.TaskState{running, running}, ready,
			false,
		},
		"another host": {
			func(m *domain.MemberSpec) { m.Host = "gpu2" }, nil, [2]swarm.TaskState{running, running}, ready, true,
		},
		"it has ended":     {rerun, nil, [2]swarm.TaskState{shutdown, swarm.TaskStateFailed}, ready, false},
		"its host is down": {rerun, nil, [2]swarm.TaskState{running, running}, down, false},
		"stopped in another run": {
			rerun, map[string]string{spec.LabelStop: "completed"}, [2]swarm.TaskState{shutdown, running}, ready, true,
		},
		"stopped in this run": {
			func(m *domain.MemberSpec) { m.Hash = "other" }, map[string]string{spec.LabelStop: "completed"},
			[2]swarm.TaskState{running, running}, ready, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := workerOf(domain.Role{}.RestartRule())
			h := newHistory(t, wanted.Restart, c.labels)
			h.task(2, c.task[0], c.task[1], 0, "")
			c.change(&wanted)
			rendered, err := spec.Render(wanted, spec.Target{
				Network: "net", Nodes: map[string]string{"gpu1": "node1", "gpu2": "node2"},
			}, 1)
			if err != nil {
				t.Fatal(err)
			}
			c.node.ID = "node1"
			got := change{run: wanted.Run, want: rendered}.replaces(dockerapi.NewNodes([]swarm.Node{c.node}), h.service,
				h.tasks)
			if got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}

// TestIsSlow: only members that may outlive the Swarm's patience are ended first.
func TestIsSlow(t *testing.T) {
	for name, c := range map[string]struct {
		grace  time.Duration
		change func(s *swarm.ServiceSpec)
		want   bool
	}{
		"in a minute":         {time.Minute, nil, false},
		"in more":             {time.Minute + 1, nil, true},
		"without a container": {time.Hour, func(s *swarm.ServiceSpec) { s.TaskTemplate.ContainerSpec = nil }, false},
		"several":             {time.Hour, func(s *swarm.ServiceSpec) { spec.SetReplicas(s, 2) }, false},
		"started first": {time.Hour, func(s *swarm.ServiceSpec) {
			s.UpdateConfig = &swarm.UpdateConfig{Order: swarm.UpdateOrderStartFirst}
		}, false},
	} {
		live := newHistory(t, domain.Role{}.RestartRule(), nil).service.Spec
		live.TaskTemplate.ContainerSpec.StopGracePeriod = &c.grace
		if c.change != nil {
			c.change(&live)
		}
		if got := isSlow(live); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
