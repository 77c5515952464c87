package members

import (
	"cmp"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// change is a service as it should be once it is started.
type change struct {
	group string
	run   int
	want  swarm.ServiceSpec
	// order is the order in which changes were staged.
	order int
	// node is the ID of the member's node, "" if the Swarm places it.
	node string
	// starts means that the member is new, so that its first task starts with the change.
	starts bool
	// pooled means that the service stands for all members of an interchangeable role.
	pooled bool
	// auth are the credentials for the image's registry, for the hosts.
	auth string
}

// staged are the staged changes that are not applied yet, by service name. They stay with the process that staged them:
// an apply that dies before it starts them has changed no member.
type staged struct {
	mu      sync.Mutex
	changes map[string]change
	// count is how many were staged.
	count int
}

func newStaged() *staged { return &staged{changes: map[string]change{}} }

func (s *staged) put(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := c.want.Name
	if before, found := s.changes[name]; found && c.pooled && before.run == c.run {
		spec.SetReplicas(&c.want, max(spec.Replicas(c.want), spec.Replicas(before.want)))
	}
	s.count++
	c.order = s.count
	s.changes[name] = c
}

// take removes and returns the staged changes of a group for this run, in the order in which they were staged, and
// drops those of earlier runs.
func (s *staged) take(group string, run int) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []change
	for name, c := range s.changes {
		if c.group != group || c.run > run {
			continue
		}
		delete(s.changes, name)
		if c.run == run {
			taken = append(taken, c)
		}
	}
	slices.SortFunc(taken, func(a, b change) int { return cmp.Compare(a.order, b.order) })
	return taken
}

// specs returns the staged specifications.
func (s *staged) specs() []swarm.ServiceSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	var specs []swarm.ServiceSpec
	for _, c := range s.changes {
		specs = append(specs, c.want)
	}
	return specs
}

// drop removes the staged change of a service.
func (s *staged) drop(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changes, service)
}
