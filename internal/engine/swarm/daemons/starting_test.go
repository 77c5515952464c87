package daemons

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestSilentNodes: an agent that has not found the GPUs yet is waited for like a silent one, so that a plan right after
// its start does not report unknown GPUs.
func TestSilentNodes(t *testing.T) {
	cluster := domain.Cluster{
		Hosts: map[string]domain.Host{"reports": {ID: "a"}, "starts": {ID: "b"}, "silent": {ID: "c"}},
	}
	got := silentNodes(cluster,
		telemetry.Reports{Reports: map[string]telemetry.Report{"a": {Node: "a"}, "b": {Node: "b", Starting: true}}})
	slices.Sort(got)
	if !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("silent are %v", got)
	}
}

// TestGather: if the agent of one host of two never answers, the other's report is returned, however long the wait.
func TestGather(t *testing.T) {
	cluster := domain.Cluster{Hosts: map[string]domain.Host{"a": {ID: "a"}, "b": {ID: "b"}}}
	failed := errors.New("no manager")
	untilLate := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, test := range map[string]struct {
		// patience is the patience for host b at this query.
		patience time.Duration
		ask      func(ctx context.Context) error
		took     time.Duration
		fails    error
	}{
		"it is worth no waiting":         {took: 5 * time.Second},
		"it is worth some":               {patience: agentWaking, took: 10*time.Second + agentRetry},
		"it is worth more than there is": {patience: time.Hour, took: agentsPatience},
		"the answer is too late":         {ask: untilLate, took: agentsPatience},
		"asking fails": {
			ask: func(context.Context) error { return failed }, took: 5 * time.Second, fails: failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				agents := func(ctx context.Context) (telemetry.Reports, string) {
					select {
					case <-time.After(5 * time.Second):
						return telemetry.Reports{Reports: map[string]telemetry.Report{"a": {Node: "a"}}}, "b is silent"
					case <-ctx.Done():
						return telemetry.Reports{}, "it took too long"
					}
				}
				reports, why, err := gatherBy(t.Context(), cluster, agents,
					func(ctx context.Context, silent []string) (time.Duration, error) {
						if test.ask == nil {
							return test.patience, nil
						}
						return 0, test.ask(ctx)
					})
				if !errors.Is(err, test.fails) || len(reports.Reports) != 1 || why != "b is silent" {
					t.Errorf("%d reported, and another did not, as %s: %v", len(reports.Reports), why, err)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
			})
		})
	}
}

func TestAgentPatience(t *testing.T) {
	node := func(state swarm.NodeState, availability swarm.NodeAvailability) swarm.Node {
		return swarm.Node{
			ID: "a", Spec: swarm.NodeSpec{Availability: availability}, Status: swarm.NodeStatus{State: state},
		}
	}
	in := func(states ...swarm.TaskState) (tasks []swarm.Task) {
		for _, state := range states {
			tasks = append(tasks,
				swarm.Task{NodeID: "a", Status: swarm.TaskStatus{State: state}, DesiredState: swarm.TaskStateRunning})
		}
		return tasks
	}
	leaving := in(swarm.TaskStateRunning)
	leaving[0].DesiredState = swarm.TaskStateShutdown
	now := time.Now()
	young := in(swarm.TaskStateRunning)
	young[0].Status.Timestamp = now.Add(-2 * time.Second)
	another := young[0]
	another.NodeID = "b"
	ready := node(swarm.NodeStateReady, swarm.NodeAvailabilityActive)
	for name, test := range map[string]struct {
		node  swarm.Node
		tasks []swarm.Task
		off   []string
		want  time.Duration
	}{
		"not ordered yet":       {node: ready, want: agentArrival},
		"being pulled":          {node: ready, tasks: in(swarm.TaskStatePreparing), want: agentArrival},
		"runs and is silent":    {node: ready, tasks: in(swarm.TaskStateRunning), want: agentWaking},
		"has just begun to run": {node: ready, tasks: young, want: agentSettling},
		"beside a young one": {
			node: ready, tasks: append(in(swarm.TaskStateRunning), another), want: agentSettling,
		},
		"about to be replaced": {node: ready, tasks: leaving, want: agentArrival},
		"replaces a former one": {
			node: ready, tasks: in(swarm.TaskStateShutdown, swarm.TaskStateStarting), want: agentArrival,
		},
		"rejected":        {node: ready, tasks: in(swarm.TaskStateRejected)},
		"kept off":        {node: ready, off: []string{"a"}},
		"on another node": {node: ready, off: []string{"b"}, want: agentArrival},
		"of a host that is down": {
			node: node(swarm.NodeStateDown, swarm.NodeAvailabilityActive), tasks: in(swarm.TaskStateRunning),
		},
		"of a drained host": {node: node(swarm.NodeStateReady, swarm.NodeAvailabilityDrain)},
		"that ran before a pause": {
			node: node(swarm.NodeStateReady, swarm.NodeAvailabilityPause), tasks: in(swarm.TaskStateRunning),
			want: agentWaking,
		},
		"of a host that is paused": {node: node(swarm.NodeStateReady, swarm.NodeAvailabilityPause)},
	} {
		t.Run(name, func(t *testing.T) {
			service := swarm.Service{
				Spec: swarm.ServiceSpec{TaskTemplate: swarm.TaskSpec{Placement: spec.KeepOff(nil, test.off)}},
			}
			if got := agentPatience(service, test.tasks, dockerapi.NewNodes([]swarm.Node{test.node}), []string{"a"},
				now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
