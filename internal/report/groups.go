package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// group is a group with its members.
type group struct {
	Name, Framework string
	Phase           string
	Tone            tone
	// Reason says why the group isn't running.
	Reason string
	// Tally counts its members by state, and Usage sums what they use.
	Tally, Usage string
	Members      []member
}

type member struct {
	Name, Host       string
	State            string
	Tone             tone
	GPUs             string
	CPUs, Memory     string
	GPUMemory, Since string
	Restarts         string
	// Error says why the last instance failed; Log holds its last log lines.
	Error string
	Log   []string
}

var toneOfPhase = map[domain.Phase]tone{
	domain.PhaseRunning: good, domain.PhasePending: warning, domain.PhaseDegraded: warning, domain.PhaseFailed: bad,
	domain.PhaseCompleted: faint,
}

var toneOfState = map[domain.State]tone{
	domain.StateRunning: good, domain.StatePending: warning, domain.StateRestarting: warning, domain.StateFailed: bad,
	overview.StateMissing: bad,
	domain.StateCompleted: faint, domain.StateStopped: faint,
}

// groupTables returns the groups, sorted by name. Sweeps are left out: their members are runs, shown in a table of
// their own.
func (r reading) groupTables() []group {
	var groups []group
	members := r.Members()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, isSweep := r.sweeps.Found[name]; isSweep {
			continue
		}
		progress := r.progress[name]
		g := group{
			Name: name, Framework: r.Groups[name].Spec.Framework, Phase: string(progress.Phase),
			Tone: toneOfPhase[progress.Phase], Reason: progress.Reason,
			Tally: tally(members[name]), Usage: usageOf(members[name]),
		}
		for _, m := range slices.SortedFunc(maps.Keys(members[name]), overview.CompareMembers) {
			g.Members = append(g.Members, r.member(members[name][m], r.Groups[name].Assignments[m]))
		}
		groups = append(groups, g)
	}
	return groups
}

func (r reading) member(m overview.Member, at domain.Assignment) member {
	shown := member{
		Name: m.Name, Host: cmp.Or(m.Host, at.Host), State: string(m.State), Tone: toneOfState[m.State],
		CPUs: number("%.2f", m.Usage.CPUs.Last), Memory: memory(m.Usage.MemoryMiB.Last),
		GPUMemory: memory(m.Usage.GPUMemoryMiB.Last),
		Error:     m.LastError, Log: r.logs[m.Name], Since: unknown,
	}
	var gpus []string
	for _, uuid := range at.GPUs.UUIDs() {
		gpus = append(gpus, strings.TrimPrefix(r.GPUName(uuid), shown.Host+":"))
	}
	shown.GPUs = strings.Join(gpus, ", ")
	switch {
	case m.FinishedAt != nil && m.State != domain.StateRunning:
		shown.Since = "ended " + ago(*m.FinishedAt, r.At) + " ago"
	case m.StartedAt != nil:
		shown.Since = ago(*m.StartedAt, r.At)
	}
	if m.Restarts > 0 {
		shown.Restarts = fmt.Sprint(m.Restarts)
	}
	return shown
}

// tally counts members by state.
func tally(members map[string]overview.Member) string {
	var parts []string
	for _, c := range overview.Tally(members) {
		parts = append(parts, fmt.Sprintf("%d %s", c.N, c.State))
	}
	return strings.Join(parts, ", ")
}

// usageOf sums the usage of the running members.
func usageOf(members map[string]overview.Member) string {
	usages := map[string]engine.MemberUsage{}
	for name, m := range members {
		usages[name] = m.Usage
	}
	sum := engine.SumUsage(usages)
	if sum.CPUs.Last == nil {
		return ""
	}
	text := fmt.Sprintf("%.2f CPUs, %s memory", *sum.CPUs.Last, memory(sum.MemoryMiB.Last))
	if sum.GPUMemoryMiB.Last != nil && *sum.GPUMemoryMiB.Last > 0 {
		text += ", " + memory(sum.GPUMemoryMiB.Last) + " GPU memory"
	}
	return text
}
