package placement

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// maxSteps limits a search. It then takes about a tenth of a second on a hundred hosts, and is exhaustive for a handful
// of members.
const maxSteps = 5_000

// search returns a layout with all members, for demands of which some found no room because of how other members of the
// group were placed. It tries what [layout.fill] would do first, and backtracks from dead ends. It returns nil if it
// finds none, and does not search if no GPUs are asked for or there can be no solution: one role alone has no room, or
// a pool has too few devices for all.
func search(in Input, sites []site, gpus *fleet, demands []*demand) *layout {
	if !slices.ContainsFunc(demands, func(d *demand) bool { return d.gpus != nil }) || !gpus.enough(demands) {
		return nil
	}
	var turns []turn
	for _, d := range demands {
		alone := newLayout(sites, gpus)
		alone.keep(d, in.Current)
		alone.complete(d)
		if !alone.fill(d) {
			return nil
		}
		for _, mayStay := range []bool{true, false} {
			for _, m := range d.members {
				if current, found := in.Current[m.Name]; found == mayStay {
					turns = append(turns, turn{d, m, current})
				}
			}
		}
	}
	s := searcher{layout: newLayout(sites, gpus), steps: maxSteps}
	if !s.place(turns, nil) {
		return nil
	}
	return s.layout
}

// turn is a member that waits to be placed.
type turn struct {
	demand  *demand
	member  domain.Member
	current domain.Assignment
}

type searcher struct {
	*layout
	// steps is how many more placements may be tried.
	steps int
}

// place places the members one after another, and reports whether all have a spot. Members of one role are alike: if
// one failed with a spot, no later one tries it.
func (s *searcher) place(turns []turn, failed []spot) bool {
	if len(turns) == 0 {
		return true
	}
	now := turns[0]
	for _, at := range s.options(now) {
		if slices.ContainsFunc(failed, at.same) {
			continue
		}
		if s.steps == 0 {
			return false
		}
		s.steps--
		s.put(now.member, at)
		var useless []spot
		if len(turns) > 1 && turns[1].demand == now.demand {
			useless = failed
		}
		if s.place(turns[1:], useless) {
			return true
		}
		s.drop(now.member)
		failed = append(failed, at)
	}
	return false
}

// options returns the possible spots of a member: where it is now, then those that the role's strategy prefers.
func (s *searcher) options(t turn) []spot {
	d := t.demand
	var options []spot
	if at, found := s.stay(d, t.member.Name, t.current); found {
		if gpus, complete := s.fleet.choose(d.gpus, at.site, at.gpus); complete {
			at.gpus = gpus
			options = append(options, at)
		}
	}
	var calm, worrying []int
	for _, at := range d.allowed {
		switch {
		case s.hasRoom(d, at, false):
			calm = append(calm, at)
		case s.hasRoom(d, at, true):
			worrying = append(worrying, at)
		}
	}
	prefer := s.preference(d)
	slices.SortStableFunc(calm, prefer)
	slices.SortStableFunc(worrying, prefer)
	for _, at := range slices.Concat(calm, worrying) {
		for _, gpus := range s.fleet.options(d.gpus, at) {
			options = append(options, spot{demand: d, site: at, gpus: gpus, entered: true})
		}
	}
	return options
}

// same reports whether two spots of one role are on the same site, with the same devices.
func (s spot) same(other spot) bool { return s.site == other.site && slices.Equal(s.gpus, other.gpus) }
