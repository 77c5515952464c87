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
	// order is that in which changes were staged.
	order int
	// node is the ID of the member's node, "" for what the Swarm places.
	node string
	// starts tells that the member is new, so that its first task starts with the change.
	starts bool
	// pooled tells that the service stands for all members of an interchangeable role.
	pooled bool
	// auth is what the hosts show to the registry of the image.
	auth string
}

// staged are the changes that were handed over and not put in force yet, by the names of their services. They are kept
// by whoever staged them: an apply that dies before it starts them has changed no member.
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

// take returns the staged changes of a group whose run is run, in the order in which they were staged, and drops those
// of earlier runs.
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

// specs returns what is staged.
func (s *staged) specs() []swarm.ServiceSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	var specs []swarm.ServiceSpec
	for _, c := range s.changes {
		specs = append(specs, c.want)
	}
	return specs
}

// drop forgets what is staged for a service.
func (s *staged) drop(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changes, service)
}
