package engine

import (
	"maps"
	"slices"
)

// UsageFilter selects usage by names. A nil list selects everything, an empty one nothing.
type UsageFilter struct {
	// Hosts selects hosts, and GPUs and members by their host; GPUs selects UUIDs.
	Hosts, GPUs []string
	// Groups, Roles and Members select members.
	Groups, Roles, Members []string
}

// Only returns the usage that matches all of the filter's lists. GPUs and hosts belong to no group, so groups, roles
// and members don't filter them; a role without members matches no filter by host or member.
func (u Usage) Only(f UsageFilter) Usage {
	passes := func(asked []string, name string) bool { return asked == nil || slices.Contains(asked, name) }
	only := Usage{Hosts: maps.Clone(u.Hosts), GPUs: maps.Clone(u.GPUs), Members: maps.Clone(u.Members)}
	maps.DeleteFunc(only.Hosts, func(name string, _ HostUsage) bool { return !passes(f.Hosts, name) })
	maps.DeleteFunc(only.GPUs,
		func(uuid string, g GPUUsage) bool { return !passes(f.Hosts, g.Host) || !passes(f.GPUs, uuid) })
	maps.DeleteFunc(only.Members, func(name string, m MemberUsage) bool {
		return !passes(f.Hosts, m.Host) || !passes(f.Groups, m.Group) || !passes(f.Roles, m.Role) ||
			!passes(f.Members, name)
	})
	if f.Hosts == nil && f.Members == nil {
		only.Roles = make(map[string][]string, len(u.Roles))
		for group, roles := range u.Roles {
			roles = slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return !passes(f.Roles, role) })
			if passes(f.Groups, group) && len(roles) > 0 {
				only.Roles[group] = roles
			}
		}
	}
	return only
}
