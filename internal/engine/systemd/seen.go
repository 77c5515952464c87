package systemd

import (
	"maps"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// seenHosts are the facts about hosts, by name. It is safe for concurrent use.
type seenHosts struct {
	mu    sync.Mutex
	facts map[string]facts.Facts
}

func (s *seenHosts) set(found map[string]facts.Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = maps.Clone(found)
}

// of returns the facts about a host, and false if they were not read.
func (s *seenHosts) of(host string) (facts.Facts, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, seen := s.facts[host]
	return f, seen
}

// checkImages returns what a host lacks for specifications with images; nothing if its facts were not read.
func (s *seenHosts) checkImages(host string, specs []domain.MemberSpec) (problems domain.Problems) {
	f, seen := s.of(host)
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

// blind reports whether a host, as far as its facts were read, can't start the agent that exists for it, and so reads
// no GPUs.
func (e *Engine) blind(host string) (f facts.Facts, agent agentFile, is bool) {
	f, seen := e.seen.of(host)
	if !seen {
		return f, agent, false
	}
	agent, found, err := e.reach.program.agent(f.Architecture)
	if err != nil || !found {
		return f, agent, false
	}
	why, _ := f.CantStart(agent.From, agent.need)
	return f, agent, why != ""
}

// checkGPUs returns the problems of specifications that request GPUs of a host that can't start the agent.
func (e *Engine) checkGPUs(host string, specs []domain.MemberSpec) (problems domain.Problems) {
	if f, agent, is := e.blind(host); is {
		for _, spec := range specs {
			if spec.UsesGPUs() {
				facts.CheckGPUs(&problems, f, spec, agent.From, agent.need)
			}
		}
	}
	return problems
}

// explainGPUs adds the reason to unreadable GPUs if the host can't start the agent that reads them.
func (e *Engine) explainGPUs(host string, gpus *domain.HostGPUs) {
	if gpus.Unknown == "" {
		return
	}
	if f, agent, is := e.blind(host); is {
		why, mend := f.CantStart(agent.From, agent.need)
		gpus.Unknown = "it " + why + ". To make them readable, " + mend
	}
}
