package sweep

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// triedAtOnce is how many runs are checked as one group, as problems of templates list all of its roles.
const triedAtOnce = 10

// Validate returns everything wrong with a sweep that its specification alone shows. Templates are rendered for every
// run.
func Validate(s domain.Sweep) domain.Problems {
	ps := s.Validate()
	keys := s.Keys()
	if ps.Err() != nil || len(keys) == 0 {
		return ps
	}
	// What runs have in common is reported once.
	if common := topology.Validate(GroupOf(s, keys[0])); common.Err() != nil {
		return append(ps, OfRuns(common)...)
	}
	seen := map[string]bool{}
	for some := range slices.Chunk(keys, triedAtOnce) {
		for _, p := range OfRuns(topology.Validate(GroupOf(s, some...))) {
			if at := p.Path.String(); !seen[at] {
				seen[at] = true
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// OfRuns converts problems of the group of runs to problems of their sweep.
func OfRuns(ps domain.Problems) domain.Problems {
	for i := range ps {
		ps[i].Path = ofRun(ps[i].Path)
		ps[i].Inputs = slices.Clone(ps[i].Inputs)
		for n, input := range ps[i].Inputs {
			ps[i].Inputs[n] = ofRun(input)
			if len(input) == 3 && input[0] == "roles" && input[2] == "env" {
				// which variables a run has: an element is known by its key, whatever is in it
				ps[i].Inputs[n] = domain.Path{"runs"}
			}
		}
	}
	return ps
}

// ofRun converts the path of a group's attribute to that of the sweep's attribute it comes from: a role's own
// environment comes from its run, and everything else from the sweep.
func ofRun(at domain.Path) domain.Path {
	if len(at) == 0 || at[0] != "roles" {
		return at
	}
	switch {
	case len(at) == 1:
		return domain.Path{"runs"}
	case len(at) == 2:
		return domain.Path{"runs", at[1]}
	case at[2] == "env":
		return append(domain.Path{"runs", at[1]}, at[3:]...)
	}
	return slices.Clone(at[2:])
}
