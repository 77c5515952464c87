package engine

import (
	"maps"
	"slices"
)

// UsageFilter says of what usage is asked for, by names. A list that is nil takes all, and an empty one none.
type UsageFilter struct {
	// Hosts are those of hosts, GPUs and members, and GPUs are UUIDs.
	Hosts, GPUs []string
	// Groups, Roles and Members are those of members.
	Groups, Roles, Members []string
}

// Only returns what of the usage passes a filter: what has each of the names that the filter asks for. GPUs and hosts
// are of no group, so that groups, roles and members take none away; a role without members has none on a host, and
// none of a name.
func (u Usage) Only(f UsageFilter) Usage {
	passes := func(asked []string, name string) bool { return asked == nil || slices.Contains(asked, name) }
	only := Usage{Hosts: maps.Clone(u.Hosts), GPUs: maps.Clone(u.GPUs), Members: maps.Clone(u.Members)}
	maps.DeleteFunc(only.Hosts, func(name string, _ HostUsage) bool { return !passes(f.Hosts, name) })
	maps.DeleteFunc(only.GPUs, func(uuid string, g GPUUsage) bool { return !passes(f.Hosts, g.Host) || !passes(f.GPUs, uuid) })
	maps.DeleteFunc(only.Members, func(name string, m MemberUsage) bool {
		return !passes(f.Hosts, m.Host) || !passes(f.Groups, m.Group) || !passes(f.Roles, m.Role) || !passes(f.Members, name)
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
