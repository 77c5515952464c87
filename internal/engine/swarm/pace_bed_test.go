//go:build linux

package swarm_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestStartInTurns starts more members on one host than it starts at a time: the last ones wait until the first ones run.
func TestStartInTurns(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	room := max(8, runtime.NumCPU())
	members := room + 4
	must(t, f.Update(acctest.Bounded(t), domain.Group{
		Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Template: domain.Template{Image: memberImage, Args: []string{"wait"}},
		Roles:    map[string]domain.Role{"worker": {Replicas: &members, Placement: domain.Placement{Hosts: []string{"node1"}}}},
	}))
	tasks, err := f.docker.TaskList(t.Context(), dockerswarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("label", "trainyard.group=job"))})
	must(t, err)
	if len(tasks) != members {
		t.Fatalf("%d members have %d tasks", members, len(tasks))
	}
	first := slices.MinFunc(tasks, func(a, b dockerswarm.Task) int { return a.Status.Timestamp.Compare(b.Status.Timestamp) }).Status.Timestamp
	begin := slices.MinFunc(tasks, func(a, b dockerswarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) }).CreatedAt
	early := 0
	for _, task := range tasks {
		// On a host where none runs after ten seconds, all follow.
		if task.CreatedAt.Before(first) && task.CreatedAt.Before(begin.Add(9*time.Second)) {
			early++
		}
	}
	if early > room {
		t.Errorf("%d members were started before the first ran, and not %d at most", early, room)
	}
	must(t, f.Destroy(acctest.Bounded(t), "job"))
}
