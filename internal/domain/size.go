package domain

import (
	"maps"
	"time"
)

// Size is what newly started members of a role request, where a policy has changed that; zero amounts are as declared.
// Like a policy's count, it is not part of the specification: members running with another size have not drifted.
type Size struct {
	Resources

	// InPlace also applies it to running members, as far as their agent can do that without a restart.
	InPlace bool `json:"in_place,omitempty"`
	// At is when it was changed, and Why the reason, in words.
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// Sized returns the requirements with the non-zero requests replaced. Declared limits keep their ratio to the requests.
func (r ResourceRequirements) Sized(to Resources) ResourceRequirements {
	sized := r
	if to.CPUs > 0 {
		sized.CPUs = to.CPUs
		sized.Limits.CPUs = inProportion(r.Limits.CPUs, r.CPUs, to.CPUs)
	}
	if to.MemoryMiB > 0 {
		sized.MemoryMiB = to.MemoryMiB
		sized.Limits.MemoryMiB = int64(inProportion(float64(r.Limits.MemoryMiB), float64(r.MemoryMiB),
			float64(to.MemoryMiB)))
	}
	return sized
}

// inProportion scales a limit by the change of the request; 0 stays 0.
func inProportion(limit, requested, now float64) float64 {
	if limit == 0 || requested == 0 {
		return max(limit, 0) // without a limit, the request is the limit
	}
	return limit * (now / requested)
}

// Sized returns the specification with what newly started members request.
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
