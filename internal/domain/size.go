package domain

import (
	"maps"
	"time"
)

// Size is what members of a role request that are started, where a policy has moved that; what is zero is as declared.
// Like a count that is a policy's, it is no part of the specification: members that run under another size are as they
// should be.
type Size struct {
	Resources

	// InPlace has members that run have it, too, as far as their agent can do that without restarting them.
	InPlace bool `json:"in_place,omitempty"`
	// At is when it was moved, and Why says in words why.
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// Sized returns the requirements with other requests, where those are not zero. Limits that are declared keep their
// proportion to what is requested.
func (r ResourceRequirements) Sized(to Resources) ResourceRequirements {
	sized := r
	if to.CPUs > 0 {
		sized.CPUs = to.CPUs
		sized.Limits.CPUs = inProportion(r.Limits.CPUs, r.CPUs, to.CPUs)
	}
	if to.MemoryMiB > 0 {
		sized.MemoryMiB = to.MemoryMiB
		sized.Limits.MemoryMiB = int64(inProportion(float64(r.Limits.MemoryMiB), float64(r.MemoryMiB), float64(to.MemoryMiB)))
	}
	return sized
}

// inProportion returns a limit of what was requested as one of what is requested now; 0 stays that.
func inProportion(limit, requested, now float64) float64 {
	if limit == 0 || requested == 0 {
		return max(limit, 0) // and what is requested is the limit, where there is none
	}
	return limit * (now / requested)
}

// Sized returns the specification with what members request that are started.
func (d GroupDocument) Sized() Group {
	if len(d.Sizes) == 0 {
		return d.Spec
	}
	sized := d.Spec
	sized.Roles = maps.Clone(d.Spec.Roles)
	for name, size := range d.Sizes {
		if role, found := sized.Roles[name]; found {
			role.Resources = role.Resources.Sized(size.Resources)
			sized.Roles[name] = role
		}
	}
	return sized
}
