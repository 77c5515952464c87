//go:build linux

package swarm_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestStartInTurns starts more members on one host than it starts at a time: the last ones wait until the first ones
// run.
func TestStartInTurns(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	room := max(8, runtime.NumCPU())
	members := room + 4
	tasks := f.startAtOnce(members)
	first := slices.MinFunc(tasks,
		func(a, b dockerswarm.Task) int { return a.Status.Timestamp.Compare(b.Status.Timestamp) }).Status.Timestamp
	begin := slices.MinFunc(tasks,
		func(a, b dockerswarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) }).CreatedAt
	early := 0
	for _, task := range tasks {
		// If none runs on a host after ten seconds, all others start.
		if task.CreatedAt.Before(first) && task.CreatedAt.Before(begin.Add(9*time.Second)) {
			early++
		}
	}
	if early > room {
		t.Errorf("%d members were started before the first ran, and not %d at most", early, room)
	}
}

// startAtOnce starts a group of this number of members on one node, and returns a task of each. On a busy machine, a
// Swarm replaces all tasks of a node whose heartbeats were late: then another group is started.
func (f farm) startAtOnce(members int) []dockerswarm.Task {
	f.Helper()
	const tries = 5
	for try := range tries {
		name := fmt.Sprint("job", try)
		must(f.T, f.Update(acctest.Bounded(f.T), domain.Group{
			Cluster: "lab", Name: name, Framework: "none", RestartScope: domain.ScopeMember,
			WaitFor:  domain.WaitRunning,
			Template: domain.Template{Image: memberImage, Args: []string{"wait"}},
			Roles: map[string]domain.Role{
				"worker": {Replicas: &members, Placement: domain.Placement{Hosts: []string{declared(f.bed.Nodes[0])}}},
			},
		}))
		tasks, err := f.docker.TaskList(f.Context(), dockerswarm.TaskListOptions{
			Filters: filters.NewArgs(filters.Arg("label", "trainyard.group="+name)),
		})
		must(f.T, err)
		must(f.T, f.Destroy(acctest.Bounded(f.T), name))
		if len(tasks) == members {
			return tasks
		}
		f.Logf("%d members had %d tasks: once more", members, len(tasks))
	}
	f.Fatalf("in none of %d groups each member had one task", tries)
	return nil
}
