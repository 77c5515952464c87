package meter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// askAgents requests the usage of a window from the agents.
func (r *reading) askAgents(q Question, s domain.AgentSource) Answer {
	over := q.Window.Or(domain.DefaultAgentWindow)
	type key time.Duration
	pending := share(r, key(over), nil,
		func(ctx context.Context) (engine.Usage, error) { return r.meter.usages.get(ctx, r.now, over) })
	return func() autoscale.Measurement {
		used, err := pending.wait()
		if err != nil {
			return missing(fmt.Sprintf("querying the hosts' agents: %v", err))
		}
		p := r.part(q.Group, q.Role)
		m := measured{part: p, used: used, source: s, aggregation: q.Aggregation, readyAfter: q.ReadyAfter.Or(over)}
		switch {
		case p.unknown != "":
			return missing(p.unknown)
		case len(p.running) == 0:
			return missing(fmt.Sprintf("no member of role %s is running", q.Role))
		case s.Of == domain.AgentTotal:
			return m.total()
		}
		return m.members()
	}
}

// measured is what agents measured for a role.
type measured struct {
	*part
	used        engine.Usage
	source      domain.AgentSource
	aggregation domain.Aggregation
	// readyAfter is how long a member has to run before its CPU usage counts.
	readyAfter time.Duration
}

// total returns the sum over all running members. It is unknown if any member's value is.
func (m measured) total() autoscale.Measurement {
	var sum autoscale.Measurement
	var absent absentees
	for _, o := range m.running {
		v, why := m.of(o)
		if why != "" {
			absent.add(o.Name, why)
			continue
		}
		sum.Value += v.value
		sum.At = earliest(sum.At, v.at)
	}
	if why := absent.why(len(m.running)); why != "" {
		return missing(why)
	}
	return sum
}

// members returns each member's value, and the mean of the ready ones.
//
// As in Kubernetes (pkg/controller/podautoscaler/replica_calculator.go, groupPods), a member that has run for less than
// readyAfter, by default a whole window, does not count as ready for CPU usage, which includes starting. Unlike there,
// the mean is over such members if there are no others, for algorithms other than target.
func (m measured) members() autoscale.Measurement {
	all := autoscale.Measurement{Members: make(map[string]float64, len(m.running)), Unready: slices.Clip(m.unready)}
	var ready, starting mean
	var absent absentees
	for _, o := range m.running {
		v, why := m.of(o)
		if why != "" {
			all.Missing = append(all.Missing, o.Name)
			absent.add(o.Name, why)
			continue
		}
		all.Members[o.Name] = v.value
		if m.starts(o, v.at) {
			all.Unready, all.ReadyAfter = append(all.Unready, o.Name), m.readyAfter
			starting.add(v)
			continue
		}
		ready.add(v)
	}
	if ready.count == 0 {
		ready = starting
	}
	if ready.count == 0 {
		return missing(absent.why(len(m.running)))
	}
	all.Value, all.At = ready.sum/float64(ready.count), ready.at
	return all
}

// starts reports whether a member's value is from the time while it was starting.
func (m measured) starts(o *domain.Observed, at time.Time) bool {
	// negative after the clock was set back
	return m.source.OfProcessors() && o.StartedAt != nil && at.Sub(*o.StartedAt).Abs() < m.readyAfter
}

// of returns the value of a member, or why there is none.
func (m measured) of(o *domain.Observed) (v value, why string) {
	member := m.used.Members[o.Name]
	asked := m.document.Spec.Roles[m.role].Resources
	switch m.source.Measure {
	case domain.AgentCPUs:
		return m.plain(member.CPUs, member)
	case domain.AgentCPUPercent:
		return m.share(member.CPUs, member, asked.CPUs, "cpus")
	case domain.AgentMemoryMiB:
		return m.plain(member.MemoryMiB, member)
	case domain.AgentMemoryPercent:
		return m.share(member.MemoryMiB, member, float64(asked.MemoryMiB), "memory_mib")
	case domain.AgentGPUMemoryMiB:
		return m.plain(member.GPUMemoryMiB, member)
	case domain.AgentGPUPercent, domain.AgentGPUMemoryPercent:
		return m.devices(m.document.Assignments[o.Name].GPUs.UUIDs())
	}
	return value{}, fmt.Sprintf("agents do not measure %q", m.source.Measure)
}

// plain returns a measure as it is. If its latest value is unknown, the whole measure is.
func (m measured) plain(measure domain.Measure, member engine.MemberUsage) (value, string) {
	picked := pick(measure, m.aggregation)
	if picked == nil || measure.Last == nil {
		return value{}, cmp.Or(member.Reason, "its agent does not report it")
	}
	return value{*picked, member.SampledAt}, ""
}

// share returns a measure in percent of what the role requests.
func (m measured) share(
	measure domain.Measure, member engine.MemberUsage, requested float64, name string,
) (value, string) {
	if requested <= 0 {
		return value{}, fmt.Sprintf("role %s requests no %s to compute a percentage of: set resources.%s", m.role, name,
			name)
	}
	v, why := m.plain(measure, member)
	v.value = 100 * v.value / requested
	return v, why
}

// devices returns the usage of a member's GPUs in percent: the mean of their utilisation, or the
// share of their total memory.
func (m measured) devices(uuids []string) (v value, why string) {
	if len(uuids) == 0 {
		return value{}, fmt.Sprintf("role %s has no GPUs from a pool", m.role)
	}
	var used, there float64
	for _, uuid := range uuids {
		gpu := m.used.GPUs[uuid]
		measure, whole := gpu.Utilisation, 100.0
		if m.source.Measure == domain.AgentGPUMemoryPercent {
			measure, whole = gpu.MemoryMiB, float64(gpu.TotalMemoryMiB)
		}
		picked := pick(measure, m.aggregation)
		if picked == nil || measure.Last == nil || whole <= 0 {
			return value{}, fmt.Sprintf("%s: %s", uuid, cmp.Or(gpu.Reason, "no agent reports it"))
		}
		used += *picked
		there += whole
		v.at = earliest(v.at, gpu.SampledAt)
	}
	v.value = 100 * used / there
	return v, ""
}

// mean accumulates values for a mean.
type mean struct {
	sum   float64
	count int
	at    time.Time
}

func (m *mean) add(v value) {
	m.sum += v.value
	m.count++
	m.at = earliest(m.at, v.at)
}

// earliest returns the earlier of two times; a may be zero for none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// absentees are members without a value.
type absentees struct {
	count       int
	name, first string
}

func (a *absentees) add(name, why string) {
	a.count++
	if a.count == 1 {
		a.name, a.first = name, why
	}
}

// why says how many of all members have no value, and why; "" if none.
func (a *absentees) why(all int) string {
	if a.count == 0 {
		return ""
	}
	return fmt.Sprintf("unknown for %d of %d members, such as %s: %s", a.count, all, a.name, a.first)
}
