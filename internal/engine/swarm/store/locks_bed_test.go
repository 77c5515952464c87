//go:build linux

package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestLockOfEndedTask: if a lock is held by a task of the Swarm, as by the controller, and the task is killed, the next
// taker gets the lock, however long the lease.
func TestLockOfEndedTask(t *testing.T) {
	t.Parallel()
	bed := testbed.Shared(t, swarmtest.One)
	swarmtest.LoadMember(t, bed)
	docker := bed.Nodes[0].Client()
	created, err := docker.ServiceCreate(t.Context(), swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: "holder"},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{Image: swarmtest.MemberImage, Args: []string{"wait"}},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionNone},
			Placement:     &swarm.Placement{Constraints: []string{"node.role==manager"}},
		},
	}, swarm.ServiceCreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, docker.ServiceRemove(context.WithoutCancel(t.Context()), created.ID)) })
	var holder swarm.Task
	acctest.Eventually(t, "the task to run", func() bool {
		tasks, err := docker.TaskList(t.Context(), swarm.TaskListOptions{})
		must(t, err)
		for _, task := range tasks {
			if task.ServiceID == created.ID && task.Status.State == swarm.TaskStateRunning {
				holder = task
			}
		}
		return holder.ID != ""
	})

	e, _ := stored(t, "tasks")
	e.Leases.Self = Owner{Machine: "a container", Process: 1, Task: holder.ID}
	other := storageOf(t, "tasks")
	onAnotherMachine(other, time.Hour)
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	_, err = other.Lock(t.Context(), jobLock, bob)
	wantLocked(t, err, ada)
	must(t, docker.ContainerKill(t.Context(), holder.Status.ContainerStatus.ContainerID, "KILL"))
	taken := takeover(t, other, ada)
	if err := release(); !errors.Is(err, engine.ErrLockLost) {
		t.Errorf("the release of a lock that was taken over: %v", err)
	}
	must(t, taken())
}
