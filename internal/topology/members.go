package topology

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// Counts returns the number of members by role: the role's replicas or, where it leaves them out, what current
// says, or else 1.
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

// Expand returns the group's members, in the order of the names of their roles and then of their indexes. They
// have no host and no address yet.
func Expand(g domain.Group, counts map[string]int) []domain.Member {
	var members []domain.Member
	for _, name := range g.RoleNames() {
		for i := range max(counts[name], 0) {
			members = append(members, domain.Member{Name: domain.MemberName(g.Name, name, i), Role: name, Index: i})
		}
	}
	return members
}

// Interchangeable tells whether the members of a role have no identity: nobody depends on where one of them is, and none has
// devices of its own.
func Interchangeable(g domain.Group, role string) bool {
	f, _ := lookup(g.Framework)
	return f.role(role).interchangeable && g.Roles[role].GPUs == nil
}

// StopOrder returns the names of the group's roles in waves: first those that complete by themselves, then those
// that serve them, so that no member outlives what it needs.
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
