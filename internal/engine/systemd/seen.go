package systemd

import (
	"maps"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// seenHosts are the facts about hosts, by their names. It is safe for concurrent use.
type seenHosts struct {
	mu    sync.Mutex
	facts map[string]facts.Facts
}

func (s *seenHosts) set(found map[string]facts.Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = maps.Clone(found)
}

// check returns what a host lacks for specifications with images; nothing where it was not looked at.
func (s *seenHosts) check(host string, specs []domain.MemberSpec) (problems domain.Problems) {
	s.mu.Lock()
	f, seen := s.facts[host]
	s.mu.Unlock()
	if !seen {
		return nil
	}
	for _, spec := range specs {
		if spec.Image != "" {
			problems = append(problems, facts.CheckImage(f, spec, spec.UsesGPUs())...)
		}
	}
	return problems
}
