package overview

import (
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// StateMissing is the state of a member that should exist but doesn't.
const StateMissing domain.State = "missing"

// Member is a member with its usage.
type Member struct {
	domain.Observed
	Usage engine.MemberUsage
}

// Count is the number of members in a state.
type Count struct {
	State domain.State
	N     int
}

// Tally counts members by state, those that run first. States that no member is in are left out.
func Tally(members map[string]Member) []Count {
	counts := map[domain.State]int{}
	for _, m := range members {
		counts[m.State]++
	}
	var tally []Count
	for _, state := range []domain.State{
		domain.StateRunning, domain.StatePending, domain.StateRestarting, domain.StateFailed, StateMissing,
		domain.StateCompleted, domain.StateStopped,
	} {
		if n := counts[state]; n > 0 {
			tally = append(tally, Count{state, n})
		}
	}
	return tally
}

// Members returns the members of each group by name: those that were found, and those that are missing.
func (r Reading) Members() map[string]map[string]Member {
	groups := map[string]map[string]Member{}
	for name, doc := range r.Groups {
		groups[name] = map[string]Member{}
		for member, at := range doc.Assignments {
			groups[name][member] = Member{
				Observed: domain.Observed{Name: member, Group: name, Host: at.Host, State: StateMissing},
			}
		}
	}
	for _, o := range r.Observed {
		if groups[o.Group] == nil {
			groups[o.Group] = map[string]Member{}
		}
		groups[o.Group][o.Name] = Member{o, r.Usage.Members[o.Name].Of(o)}
	}
	return groups
}

// CompareMembers orders member names: those of one role by index.
func CompareMembers(a, b string) int {
	roleA, indexA := split(a)
	roleB, indexB := split(b)
	if roleA == roleB {
		return indexA - indexB
	}
	return strings.Compare(a, b)
}

// split separates the index from a member's name.
func split(member string) (role string, index int) {
	at := strings.LastIndexByte(member, '-')
	index, err := strconv.Atoi(member[at+1:])
	if err != nil {
		return member, 0
	}
	return member[:at+1], index
}
