package main

import (
	"maps"
	"slices"
)

// plan says which brokers should have replicas, according to the hooks so far.
type plan struct {
	// leaving are the brokers announced for removal, until they are gone or wanted again.
	leaving map[int32]bool
	// members is the number of brokers of the group, including leaving ones; 0 until a hook says it.
	members int
}

// joined returns the plan once the group has this many brokers.
func (p plan) joined(to int) plan {
	leaving := maps.Clone(p.leaving)
	maps.DeleteFunc(leaving, func(b int32, _ bool) bool { return int(b) < to })
	return plan{leaving, to}
}

// left returns the plan while brokers leave a group of this many.
func (p plan) left(from int, brokers []int32) plan {
	leaving := maps.Clone(p.leaving)
	if leaving == nil {
		leaving = map[int32]bool{}
	}
	for _, b := range brokers {
		leaving[b] = true
	}
	return plan{leaving, from}
}

// stayed returns the plan with brokers that stay although they were announced for removal.
func (p plan) stayed(brokers []int32) plan {
	leaving := maps.Clone(p.leaving)
	for _, b := range brokers {
		delete(leaving, b)
	}
	return plan{leaving, p.members}
}

// brokers returns those that should have replicas. It includes brokers that are down, which are waited for, except
// those with IDs beyond the group's and, while the group's size is unknown, those without replicas.
func (p plan) brokers(s state) []int32 {
	owned := s.replicas()
	var stay []int32
	for b, alive := range s.brokers {
		gone := !alive && (p.beyond(b) || p.members == 0 && owned[b] == 0)
		if !p.leaving[b] && !gone {
			stay = append(stay, b)
		}
	}
	slices.Sort(stay)
	return stay
}

// gone returns the brokers to unregister: those down and without replicas that are leaving, or have IDs beyond the
// group's. A broker that is only starting is also down, and would not come up if it were unregistered.
func (p plan) gone(s state) []int32 {
	owned := s.replicas()
	var gone []int32
	for b, alive := range s.brokers {
		if !alive && owned[b] == 0 && (p.leaving[b] || p.beyond(b)) {
			gone = append(gone, b)
		}
	}
	slices.Sort(gone)
	return gone
}

// beyond reports whether a broker's ID is too large for the group's members.
func (p plan) beyond(broker int32) bool { return p.members > 0 && int(broker) >= p.members }
