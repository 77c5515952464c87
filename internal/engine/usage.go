package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Usage is what hosts and members of a cluster use.
type Usage struct {
	Hosts   map[string]HostUsage
	Members map[string]MemberUsage
}

// HostUsage is what is used of a host; what is not known is nil, and Reason says why.
type HostUsage struct {
	CPUs           *float64 // processors busy, 0 to the host's number of them
	MemoryMiB      *float64 // memory in use
	TotalCPUs      float64
	TotalMemoryMiB int64
	SampledAt      time.Time
	Reason         string
}

// MemberUsage is what a member uses in all its processes; what is not known is nil, and Reason says why.
type MemberUsage struct {
	// Group, Role, Host and State are those of the member.
	Group, Role, Host string
	State             domain.State

	CPUs      *float64 // processors busy
	MemoryMiB *float64 // resident memory
	SampledAt time.Time
	Reason    string
}

// Of returns what was sampled of a member as that of the one that was observed.
func (u MemberUsage) Of(o domain.Observed) MemberUsage {
	u.Group, u.Role, u.Host, u.State = o.Group, o.Role, o.Host, o.State
	return u
}

// SumUsage returns what the running ones of some members use together, sampled when the first of them was. Where it is not known of one of
// them it is not known of all, and Reason names that one.
func SumUsage(members map[string]MemberUsage) MemberUsage {
	var cpus, memory float64
	sum := MemberUsage{CPUs: &cpus, MemoryMiB: &memory}
	running := 0
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		if m.State != domain.StateRunning {
			continue
		}
		running++
		if sum.SampledAt.IsZero() || m.SampledAt.Before(sum.SampledAt) {
			sum.SampledAt = m.SampledAt
		}
		if m.CPUs == nil || m.MemoryMiB == nil {
			return MemberUsage{SampledAt: m.SampledAt, Reason: fmt.Sprintf("member %s: %s", name, m.Reason)}
		}
		cpus += *m.CPUs
		memory += *m.MemoryMiB
	}
	if running == 0 {
		return MemberUsage{Reason: "no member runs"}
	}
	return sum
}

// GPUMemory returns the memory in MiB that a member uses on the GPUs of its host; nil where that is not known.
func GPUMemory(member string, found domain.HostGPUs) *float64 {
	if found.Unknown != "" {
		return nil
	}
	var used float64
	for _, gpu := range found.GPUs {
		if gpu.Processes == nil {
			return nil
		}
		for _, p := range gpu.Processes {
			switch {
			case p.Member != member:
			case p.MemoryMiB == nil:
				return nil
			default:
				used += float64(*p.MemoryMiB)
			}
		}
	}
	return &used
}
