package main

import (
	"maps"
	"slices"
)

// plan is which brokers should have replicas, as far as hooks have told.
type plan struct {
	// leaving are the brokers that were told of before they go, until they have gone or are wanted again.
	leaving map[int32]bool
	// members is how many brokers the group has, or has had until those that leave go; 0 while nobody has told.
	members int
}

// joined returns the plan once the group has so many brokers.
func (p plan) joined(to int) plan {
	leaving := maps.Clone(p.leaving)
	maps.DeleteFunc(leaving, func(b int32, _ bool) bool { return int(b) < to })
	return plan{leaving, to}
}

// left returns the plan while brokers leave a group of so many.
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

// stayed returns the plan where brokers stay after all that were told of before they go.
func (p plan) stayed(brokers []int32) plan {
	leaving := maps.Clone(p.leaving)
	for _, b := range brokers {
		delete(leaving, b)
	}
	return plan{leaving, p.members}
}

// brokers returns those that should have replicas. One that is down is waited for, unless its ID is beyond the group's.
// Where nobody has told how many the group has, one that is down and has nothing counts as gone.
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

// gone returns the brokers to unregister: they are down, have nothing, and were told to leave. A broker that is merely
// starting is down, too, and would not come up if it was unregistered.
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

// beyond reports whether a broker's ID is one that the group has no member for.
func (p plan) beyond(broker int32) bool { return p.members > 0 && int(broker) >= p.members }
