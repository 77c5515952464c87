package top

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

var toneOfState = map[domain.State]tone{
	domain.StateRunning: good, domain.StatePending: warning, domain.StateRestarting: warning, domain.StateFailed: bad,
	overview.StateMissing: bad,
	domain.StateCompleted: faint, domain.StateStopped: faint,
}

// groupTable shows groups, each followed by its members.
func (s state) groupTable(groups map[string]map[string]overview.Member, by sorting, width int) []line {
	value := choose(by, func(m overview.Member) *float64 { return m.Usage.CPUs.Last },
		func(m overview.Member) *float64 { return m.Usage.MemoryMiB.Last })
	r := s.reading
	var rows [][]line
	for _, group := range sorted(groups, nil, strings.Compare) {
		members := groups[group]
		usages := make(map[string]engine.MemberUsage, len(members))
		for name, m := range members {
			usages[name] = m.Usage
		}
		sum := engine.SumUsage(usages)
		head := []line{
			text(group, strong), tally(members), cpus(sum), memory(sum.MemoryMiB.Last), memory(sum.GPUMemoryMiB.Last),
			{}, {},
		}
		below := counts(r, group)
		for _, name := range sorted(members, value, overview.CompareMembers) {
			m := members[name]
			below = append(below, []line{
				text("  "+name, plain), text(string(m.State), toneOfState[m.State]), cpus(m.Usage),
				memory(m.Usage.MemoryMiB.Last), memory(m.Usage.GPUMemoryMiB.Last),
				text(m.Host, plain), restarts(m.Restarts),
			})
		}
		if !s.matches(head) {
			below = s.matching(below)
		}
		if len(below) > 0 || s.matches(head) {
			rows = append(append(rows, head), below...)
		}
	}
	return table([]column{
		{title: "GROUP AND MEMBERS"}, {title: "STATE"}, {title: "CPUS", right: true}, {title: "MEMORY", right: true},
		{title: "GPU MEMORY", right: true, rank: 1},
		{title: "HOST", rank: 2}, {title: "RESTARTS", right: true, rank: 3},
	}, rows, width)
}

// tally counts the members of a group by state.
func tally(members map[string]overview.Member) line {
	var l line
	for i, c := range overview.Tally(members) {
		if i > 0 {
			l = append(l, span{text: ", "})
		}
		l = append(l, span{fmt.Sprintf("%d %s", c.N, c.State), toneOfState[c.State]})
	}
	return l
}

func cpus(u engine.MemberUsage) line { return number("%.2f", u.CPUs.Last) }

// restarts shows the number of restarts; nothing if there were none.
func restarts(n int) line {
	if n == 0 {
		return nil
	}
	return text(strconv.Itoa(n), warning)
}
