package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// The window over which hosts report usage: at least the time between two samples, at most the time that samples are
// kept.
const (
	ShortestWindow = time.Second
	LongestWindow  = 10 * time.Minute
)

// Usage is what hosts, GPUs and members of a cluster use.
type Usage struct {
	Hosts map[string]HostUsage
	// GPUs are by UUID.
	GPUs    map[string]GPUUsage
	Members map[string]MemberUsage
	// Roles are the sorted names of the groups' roles, including those without members; nil until [Usage.Expected] adds
	// them.
	Roles map[string][]string
}

// HostUsage is the usage of a host; unknown measures have no values, and Reason says why.
type HostUsage struct {
	CPUs           domain.Measure // busy processors, 0 to the host's number of them
	MemoryMiB      domain.Measure // memory in use
	Load           domain.Measure // processes that run or wait to run, averaged over a minute
	DiskMiB        domain.Measure // used space of the file system that its agent writes to
	ReceivedBps    domain.Measure // bytes per second that its network interfaces received, and sent
	SentBps        domain.Measure
	TotalCPUs      float64
	TotalMemoryMiB int64
	TotalDiskMiB   int64
	SampledAt      time.Time
	Reason         string
	// GPUsReason says why its GPUs are unknown; empty if they are known.
	GPUsReason string
}

// GPUUsage is the usage of a GPU; unknown measures have no values, and Reason says why.
type GPUUsage struct {
	// Host is the host that has it; if several hosts share a machine, the first of them.
	Host           string
	TotalMemoryMiB int64
	Utilisation    domain.Measure // share of the time in which it was working, in percent
	MemoryMiB      domain.Measure // memory in use
	TemperatureC   domain.Measure
	PowerW         domain.Measure
	// Members are the members that use it; nil if unknown.
	Members   []string
	SampledAt time.Time
	Reason    string
}

// MemberUsage is what a member uses in all its processes; unknown measures have no values, and Reason says why.
type MemberUsage struct {
	// Group, Role, Host and State are those of the member.
	Group, Role, Host string
	State             domain.State

	CPUs         domain.Measure // busy processors
	MemoryMiB    domain.Measure // resident memory
	GPUMemoryMiB domain.Measure // memory on the GPUs of its host
	ReceivedBps  domain.Measure // bytes per second that it received, and sent
	SentBps      domain.Measure
	SampledAt    time.Time
	Reason       string
	// TrafficReason says why its network traffic is unknown, which is so on many hosts where all else is known.
	TrafficReason string
}

// WhyNoTraffic returns why the member's network traffic is unknown; empty if it is known.
func (u MemberUsage) WhyNoTraffic() string {
	if u.ReceivedBps.Last != nil && u.SentBps.Last != nil {
		return ""
	}
	why := u.TrafficReason
	if u.CPUs.Last == nil && u.MemoryMiB.Last == nil {
		why = cmp.Or(why, u.Reason)
	}
	return cmp.Or(why, "its network traffic was unknown at the last sample")
}

// Of returns the usage with the group, role, host and state of the observed member.
func (u MemberUsage) Of(o domain.Observed) MemberUsage {
	u.Group, u.Role, u.Host, u.State = o.Group, o.Role, o.Host, o.State
	return u
}

// Expected returns the usage with the groups' roles, and with an entry for each pool device and each group member that
// nothing was reported for, so that missing ones are visible.
func (u Usage) Expected(pools map[string]domain.GPUPoolDocument, groups map[string]domain.GroupDocument) Usage {
	u.GPUs, u.Members = maps.Clone(u.GPUs), maps.Clone(u.Members)
	for _, pool := range pools {
		for host, devices := range pool.Devices {
			for _, device := range devices {
				if _, reported := u.GPUs[device.UUID]; !reported {
					why := cmp.Or(u.Hosts[host].GPUsReason, pool.Trouble[device.UUID], "not found on host "+host)
					u.GPUs[device.UUID] = GPUUsage{Host: host, TotalMemoryMiB: device.MemoryMiB, Reason: why}
				}
			}
		}
	}
	u.Roles = make(map[string][]string, len(groups))
	for group, document := range groups {
		u.Roles[group] = slices.Sorted(maps.Keys(document.Counts))
		for role := range document.Counts {
			for _, i := range document.Indexes(role) {
				name := domain.MemberName(group, role, i)
				if _, reported := u.Members[name]; !reported {
					u.Members[name] = MemberUsage{
						Group: group, Role: role, Host: document.Assignments[name].Host,
						Reason: "the member is missing",
					}
				}
			}
		}
	}
	return u
}

// SumUsage returns the total usage of the running members, sampled when the first of them was: sums of their last
// values and means, and of their peaks (Max, P95), which are upper bounds for those of the sum. A measure unknown for
// one member is unknown for the sum, and Reason names that member.
func SumUsage(members map[string]MemberUsage) MemberUsage {
	var sum MemberUsage
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
		if m.CPUs.Last == nil || m.MemoryMiB.Last == nil {
			return MemberUsage{SampledAt: m.SampledAt, Reason: fmt.Sprintf("member %s: %s", name, m.Reason)}
		}
		if sum.Reason == "" && (m.Reason != "" || m.GPUMemoryMiB.Last == nil) {
			sum.Reason = fmt.Sprintf("member %s: %s", name, cmp.Or(m.Reason, "its GPU memory is unknown"))
		}
		if why := m.WhyNoTraffic(); sum.TrafficReason == "" && why != "" {
			sum.TrafficReason = fmt.Sprintf("member %s: %s", name, why)
		}
		if running == 1 {
			sum.CPUs, sum.MemoryMiB, sum.GPUMemoryMiB, sum.ReceivedBps, sum.SentBps = m.CPUs, m.MemoryMiB,
				m.GPUMemoryMiB, m.ReceivedBps, m.SentBps
			continue
		}
		sum.CPUs, sum.MemoryMiB, sum.GPUMemoryMiB = add(sum.CPUs, m.CPUs), add(sum.MemoryMiB, m.MemoryMiB),
			add(sum.GPUMemoryMiB, m.GPUMemoryMiB)
		sum.ReceivedBps, sum.SentBps = add(sum.ReceivedBps, m.ReceivedBps), add(sum.SentBps, m.SentBps)
	}
	switch {
	case len(members) == 0:
		return MemberUsage{Reason: "it has no members"}
	case running == 0:
		return MemberUsage{Reason: "no member is running"}
	}
	return sum
}

// add returns the sum of two measures; values unknown in either are unknown in the sum.
func add(a, b domain.Measure) domain.Measure {
	plus := func(a, b *float64) *float64 {
		if a == nil || b == nil {
			return nil
		}
		return new(*a + *b)
	}
	return domain.Measure{
		Last: plus(a.Last, b.Last), Mean: plus(a.Mean, b.Mean), Max: plus(a.Max, b.Max), P95: plus(a.P95, b.P95),
	}
}

// GPUMemory returns the memory in MiB that an instance uses on the GPUs of its host; NaN if unknown.
func GPUMemory(instance string, found domain.HostGPUs) float64 {
	if found.Unknown != "" {
		return math.NaN()
	}
	var used float64
	for _, gpu := range found.GPUs {
		if gpu.Processes == nil {
			return math.NaN()
		}
		for _, p := range gpu.Processes {
			switch {
			case p.Instance != instance:
			case p.MemoryMiB == nil:
				return math.NaN()
			default:
				used += float64(*p.MemoryMiB)
			}
		}
	}
	return used
}
