//go:build linux

package members

import (
	"net/http"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestAwaitTasks: a wait for a task to end outlasts a restart of the only manager.
func TestAwaitTasks(t *testing.T) {
	e, proxy := stored(t, "awaited")
	manager := testbed.Shared(t, swarmtest.One).Nodes[0].Client()
	created, err := manager.ServiceCreate(t.Context(), swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: "awaited"},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{Image: swarmtest.MemberImage},
			Placement:     &swarm.Placement{Constraints: []string{"node.id==nowhere"}},
		},
	}, swarm.ServiceCreateOptions{})
	swarmtest.Must(t, err)
	t.Cleanup(func() { _ = manager.ServiceRemove(acctest.Bounded(t), created.ID) }) // others share the bed
	its := func(task swarm.Task) bool { return task.ServiceID == created.ID }
	acctest.Eventually(t, "the task to exist", func() bool {
		tasks, err := manager.TaskList(t.Context(), swarm.TaskListOptions{})
		swarmtest.Must(t, err)
		return slices.ContainsFunc(tasks, its)
	})
	ctx, done := acctest.Bounded(t), make(chan error, 1)
	go func() { done <- e.AwaitTasks(ctx, its) }()
	lists := func(n int) {
		acctest.Eventually(t, "the tasks to be listed", func() bool {
			listed := 0
			for _, call := range proxy.Calls() {
				if call == (testbed.Call{Method: http.MethodGet, Path: "/tasks"}) {
					listed++
				}
			}
			return listed >= n || len(done) > 0
		})
	}
	lists(2)
	proxy.Reset()
	proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
	lists(2)
	proxy.Reset()
	lists(2)
	if len(done) > 0 {
		t.Error("the wait ended before the task")
	}
	swarmtest.Must(t, manager.ServiceRemove(t.Context(), created.ID))
	swarmtest.Must(t, <-done)
}
