package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// stateMissing is that of a member which should be there, and is not.
const stateMissing domain.State = "missing"

// states are those of members in the order in which they are counted, with how they stand out.
var states = []struct {
	state domain.State
	tone  tone
}{
	{domain.StateRunning, good}, {domain.StatePending, warning}, {domain.StateRestarting, warning}, {domain.StateFailed, bad}, {stateMissing, bad},
	{domain.StateCompleted, faint}, {domain.StateStopped, faint},
}

// shownMember is a member with what it uses.
type shownMember struct {
	domain.Observed
	usage engine.MemberUsage
}

// members returns those of each group by their names: those that were found, and those that should have been.
func (r reading) members() map[string]map[string]shownMember {
	groups := map[string]map[string]shownMember{}
	for name, doc := range r.groups {
		groups[name] = map[string]shownMember{}
		for member, at := range doc.Assignments {
			groups[name][member] = shownMember{Observed: domain.Observed{Name: member, Group: name, Host: at.Host, State: stateMissing}}
		}
	}
	for _, o := range r.observed {
		if groups[o.Group] == nil {
			groups[o.Group] = map[string]shownMember{}
		}
		groups[o.Group][o.Name] = shownMember{o, r.usage.Members[o.Name].Of(o)}
	}
	return groups
}

func (r reading) groupTable(groups map[string]map[string]shownMember, by sorting, width int) []line {
	value := choose(by, func(m shownMember) *float64 { return m.usage.CPUs.Last }, func(m shownMember) *float64 { return m.usage.MemoryMiB.Last })
	var rows [][]line
	for _, group := range sorted(groups, nil, strings.Compare) {
		members := groups[group]
		usages := make(map[string]engine.MemberUsage, len(members))
		for name, m := range members {
			usages[name] = m.usage
		}
		sum := engine.SumUsage(usages)
		rows = append(rows, []line{text(group, strong), tally(members), cpus(sum), memory(sum.MemoryMiB.Last), memory(sum.GPUMemoryMiB.Last), {}, {}})
		rows = append(rows, r.counts(group)...)
		for _, name := range sorted(members, value, inOrder) {
			m := members[name]
			rows = append(rows, []line{
				text("  "+name, plain), text(string(m.State), toneOfState(m.State)), cpus(m.usage), memory(m.usage.MemoryMiB.Last), memory(m.usage.GPUMemoryMiB.Last),
				text(m.Host, plain), restarts(m.Restarts),
			})
		}
	}
	return table([]column{
		{title: "GROUP AND MEMBERS"}, {title: "STATE"}, {title: "CPUS", right: true}, {title: "MEMORY", right: true}, {title: "GPU MEMORY", right: true, rank: 1},
		{title: "HOST", rank: 2}, {title: "RESTARTS", right: true, rank: 3},
	}, rows, width)
}

// inOrder compares names of members, those of one role by their numbers.
func inOrder(a, b string) int {
	roleA, numberA := split(a)
	roleB, numberB := split(b)
	if roleA == roleB {
		return numberA - numberB
	}
	return strings.Compare(a, b)
}

// split takes the number off the name of a member.
func split(member string) (role string, number int) {
	at := strings.LastIndexByte(member, '-')
	number, err := strconv.Atoi(member[at+1:])
	if err != nil {
		return member, 0
	}
	return member[:at+1], number
}

// tally counts the members of a group by their states.
func tally(members map[string]shownMember) line {
	counts := map[domain.State]int{}
	for _, m := range members {
		counts[m.State]++
	}
	var l line
	for _, s := range states {
		if counts[s.state] == 0 {
			continue
		}
		if len(l) > 0 {
			l = append(l, span{text: ", "})
		}
		l = append(l, span{fmt.Sprintf("%d %s", counts[s.state], s.state), s.tone})
	}
	return l
}

func toneOfState(state domain.State) tone {
	i := slices.IndexFunc(states, func(s struct {
		state domain.State
		tone  tone
	},
	) bool {
		return s.state == state
	})
	if i < 0 {
		return plain
	}
	return states[i].tone
}

func cpus(u engine.MemberUsage) line { return number("%.2f", u.CPUs.Last) }

// restarts shows their number, and nothing where there were none.
func restarts(n int) line {
	if n == 0 {
		return nil
	}
	return text(strconv.Itoa(n), warning)
}
