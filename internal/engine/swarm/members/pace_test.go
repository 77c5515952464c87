package members

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestPacing: who starts at once, and who waits for whom.
func TestPacing(t *testing.T) {
	node := func(id string, cpus float64) swarm.Node {
		return swarm.Node{
			ID:          id,
			Description: swarm.NodeDescription{Resources: swarm.Resources{NanoCPUs: int64(cpus * spec.NanoCPUs)}},
		}
	}
	p := newPacing(0, []swarm.Node{node("small", 2), node("large", 10)})
	var changes []change
	add := func(n int, role, node string, each func(c *change)) {
		for i := range n {
			id := spec.Identity{Cluster: "lab", Group: "job", Role: role, Index: i}
			c := change{
				node: node, starts: true, want: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: id.Member(i)}},
			}
			c.want.TaskTemplate.ContainerSpec = &swarm.ContainerSpec{Labels: id.Labels()}
			if each != nil {
				each(&c)
			}
			changes = append(changes, c)
		}
	}
	add(10, "a", "small", nil)
	add(12, "b", "large", nil)
	add(9, "placed", "", nil)
	add(9, "running", "small", func(c *change) { c.starts = false })
	add(9, "checked", "small",
		func(c *change) { c.want.TaskTemplate.ContainerSpec.Healthcheck = &container.HealthConfig{} })
	check := func(when string, got []change, want ...string) {
		t.Helper()
		var names []string
		for _, c := range got {
			names = append(names, strings.TrimPrefix(c.want.Name, "job-"))
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s %v wait, not %v", when, names, want)
		}
	}
	task := func(c change, state swarm.TaskState) swarm.Task {
		return swarm.Task{
			Spec:   swarm.TaskSpec{ContainerSpec: c.want.TaskTemplate.ContainerSpec},
			Status: swarm.TaskStatus{State: state},
		}
	}

	now, later := p.next(changes)
	check("at first", later, "a-8", "a-9", "b-10", "b-11")
	if len(now)+len(later) != len(changes) {
		t.Errorf("of %d members %d start and %d wait", len(changes), len(now), len(later))
	}
	if p.arrive(
		[]swarm.Task{task(changes[0], swarm.TaskStateStarting), task(changes[30], swarm.TaskStateRunning), {}},
	) {
		t.Error("one that starts has arrived, or one that nobody waits for")
	}
	if !p.arrive([]swarm.Task{task(changes[0], swarm.TaskStateRunning), task(changes[10], swarm.TaskStateFailed)}) {
		t.Error("none has arrived")
	}
	_, later = p.next(later)
	check("after one of each has arrived", later, "a-9", "b-11")
	clear(p.room)
	_, later = p.next(later)
	check("without patience", later)
}
