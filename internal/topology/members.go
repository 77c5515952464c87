package topology

import (
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Counts returns the number of members by role: the role's replicas if it declares them, else the current number, else
// 1.
func Counts(g domain.Group, current map[string]int) map[string]int {
	counts := make(map[string]int, len(g.Roles))
	for name, r := range g.Roles {
		kept, known := current[name]
		switch {
		case r.Replicas != nil:
			counts[name] = *r.Replicas
		case known:
			counts[name] = kept
		default:
			counts[name] = 1
		}
	}
	return counts
}

// Scalable reports whether the number of members of a role may change without an apply: the role omits replicas, and
// the framework allows more than one.
func Scalable(g domain.Group, role string) bool {
	f, _ := lookup(g.Framework)
	r, found := g.Roles[role]
	return found && r.Replicas == nil && f.role(role).most != 1
}

// AnyScalable reports whether a group has a role whose number of members may change without an apply.
func AnyScalable(g domain.Group) bool {
	return slices.ContainsFunc(g.RoleNames(), func(role string) bool { return Scalable(g, role) })
}

// Absent filters the stored gaps in the indexes of members by role. Roles that declare their replicas, and roles whose
// members have an identity, have no gaps.
func Absent(g domain.Group, counts map[string]int, stored map[string][]int) map[string][]int {
	var absent map[string][]int
	for name, indexes := range stored {
		if r, found := g.Roles[name]; !found || r.Replicas != nil || HasIdentity(g, name) {
			continue
		}
		if gaps := domain.Gaps(domain.Indexes(counts[name], indexes)); len(gaps) > 0 {
			if absent == nil {
				absent = map[string][]int{}
			}
			absent[name] = gaps
		}
	}
	return absent
}

// Expand returns the group's members, except absent ones, ordered by role and index. They have no host and no address
// yet.
func Expand(g domain.Group, counts map[string]int, absent map[string][]int) []domain.Member {
	total := 0
	for name := range g.Roles {
		total += max(counts[name], 0)
	}
	members := make([]domain.Member, 0, total)
	for _, name := range g.RoleNames() {
		for _, i := range domain.Indexes(counts[name], absent[name]) {
			members = append(members, domain.Member{Name: domain.MemberName(g.Name, name, i), Role: name, Index: i})
		}
	}
	return members
}

// HasIdentity reports whether others may depend on where a certain member of a role is. Members of other roles are all
// the same, apart from any devices they have.
func HasIdentity(g domain.Group, role string) bool {
	f, _ := lookup(g.Framework)
	return !f.role(role).interchangeable
}

// Interchangeable reports whether the members of a role have no identity: nobody depends on where one of them is, and
// none has devices of its own.
func Interchangeable(g domain.Group, role string) bool {
	return !HasIdentity(g, role) && g.Roles[role].GPUs == nil
}

// StopOrder returns the names of the group's roles in waves: first those that complete by themselves, then those that
// serve them, so that no member outlives what it needs.
func StopOrder(g domain.Group) [][]string {
	f, _ := lookup(g.Framework)
	var completing, serving []string
	for _, name := range g.RoleNames() {
		if f.role(name).serves {
			serving = append(serving, name)
		} else {
			completing = append(completing, name)
		}
	}
	var waves [][]string
	for _, wave := range [][]string{completing, serving} {
		if len(wave) > 0 {
			waves = append(waves, wave)
		}
	}
	return waves
}
