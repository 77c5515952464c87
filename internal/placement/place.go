// Package placement decides on which host, on which port, and with which GPUs each member of a group runs, or says with
// numbers why that is impossible.
//
// It is a pure function of its input: the same input gives the same result.
//
// Members stay where they are as long as that is allowed. The others are placed role by role, the hardest first: roles
// with the fewest hosts to choose from, then those that request the largest share of a host. Within a role, members are
// placed by index. This is first-fit decreasing; among the hosts that fit, the role's strategy chooses, and among
// equals, how close their devices are to each other. Before that, members of a role that is spread by a label go to the
// label value that has the fewest of them, among those with room.
//
// If new or grown members don't fit next to those that stay, placement starts over in the same order, and a member
// stays only if its host has room left when its turn comes. If GPUs are requested and that fails too, a bounded search
// undoes the choices that were in the way.
//
// What others have reserved, and hosts that take no new members, restrict new members and members that grow; members
// that stay unchanged already have their place. The same holds for devices that others use, and for lost devices of
// members that are told to stay.
package placement

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Input is everything that placement depends on.
type Input struct {
	Group domain.Group
	// Members are the group's members as topology lays them out: name, role and index.
	Members []domain.Member
	// Current is where members are now, by name. They stay there if that is still allowed.
	Current map[string]domain.Assignment
	// Hosts are the cluster's hosts by name.
	Hosts map[string]domain.Host
	// SharedAddress means that members are reached at their host's address, so that those on hosts with the same
	// address share its ports. Otherwise each member has all ports to itself.
	SharedAddress bool
	// Images means that members with an image run in containers even if they share addresses, and so publish ports.
	Images bool
	// BusyPorts are the ports on which something listens now, by address, including running members' own.
	BusyPorts map[string][]int
	// Closed are the hosts that take no new members, and the reason, such as "host gpu1 is down". Members that are
	// there stay.
	Closed map[string]string
	// Reserved is what is reserved by others than the cluster's groups, by host.
	Reserved map[string]domain.Resources
	// FreeMiB is how much memory was measured as free, by host; new members take no more than that. Hosts not listed
	// were not measured.
	FreeMiB map[string]int64
	// Most limits how many members of a [Fill] a host or device takes, by name or UUID. Those not listed take as many
	// as fit.
	Most map[string]int
	// Room is the number of members of all groups that the cluster's network has addresses for; 0 means no limit.
	Room int
	// Pools are the documents of the cluster's GPU pools by name.
	Pools map[string]domain.GPUPoolDocument
	// Devices is the state of the pools' devices, by UUID. Devices without anything to report are left out.
	Devices map[string]DeviceState
	// Pinned keeps all placed members where they are, without any checks. Only the others are placed.
	Pinned bool
	// Staying are the members that keep lost devices, as there are no others for them, or nobody asked them to leave.
	Staying map[string]bool
	// Groups are the documents of the cluster's groups by name. Other groups' requests and ports are taken; the group's
	// own document tells what its members requested so far.
	Groups map[string]domain.GroupDocument
}

// Place returns the host, port and GPUs of every member by name, with warnings, or the problems that prevent it.
func Place(in Input) (map[string]domain.Assignment, domain.Problems) {
	if len(in.Hosts) == 0 {
		return nil, noHosts(in)
	}
	others := neighbours(in, in.Group.Name)
	if ps := checkInput(in, others); len(ps) > 0 {
		return nil, ps
	}
	sites := survey(in, others)
	gpus := newFleet(in, sites, others)
	demands := demandsOf(in, sites, gpus)

	l, ps := arrange(in, sites, gpus, demands)
	if len(ps) > 0 {
		return nil, ps
	}
	ports, ps := assignPorts(in, others, demands, l)
	if len(ps) > 0 {
		return nil, ps
	}
	assignments := make(map[string]domain.Assignment, len(in.Members))
	for member, s := range l.spots {
		assignments[member] = domain.Assignment{
			Host: l.sites[s.site].name, Port: ports[member], GPUs: l.fleet.set(s.gpus),
		}
		if s.pinned {
			assignments[member] = in.Current[member]
		}
	}
	return assignments, warn(in, demands, l)
}

func noHosts(in Input) (ps domain.Problems) {
	ps.Add(domain.Path{"cluster"}, "No hosts", "cluster %q has no hosts to place members on; declare at least one",
		in.Group.Cluster)
	return ps
}

// checkInput returns what prevents members from being placed anywhere.
func checkInput(in Input, others []neighbour) domain.Problems {
	ps := checkRoles(in, in.Group.RoleNames())
	isNew := func(m domain.Member) bool { _, placed := in.Current[m.Name]; return !placed }
	if in.Room > 0 && len(in.Members)+len(others) > in.Room && slices.ContainsFunc(in.Members, isNew) {
		ps.Add(domain.Path{"roles"}, "Not enough addresses",
			"the network of cluster %q has addresses for %s, and group %q would have %d beside the %d of other "+
				"groups; lower replicas, or give the cluster a larger network.subnet",
			in.Group.Cluster, count(in.Room, "member"), in.Group.Name, len(in.Members), len(others))
	}
	return ps
}

// checkRoles checks that the hosts and pools that roles name exist.
func checkRoles(in Input, roles []string) domain.Problems {
	var ps domain.Problems
	known := slices.Sorted(maps.Keys(in.Hosts))
	for _, role := range roles {
		for i, host := range in.Group.Roles[role].Placement.Hosts {
			if _, found := in.Hosts[host]; !found {
				ps.Add(domain.Path{"roles", domain.Key(role), "placement", "hosts", i}, "Unknown host",
					"cluster %q has no host %q; its hosts are %s", in.Group.Cluster, host, strings.Join(known, ", "))
			}
		}
	}
	return append(ps, checkPools(in, roles)...)
}

// arrange gives every member a host.
func arrange(in Input, sites []site, gpus *fleet, demands []*demand) (*layout, domain.Problems) {
	if in.Pinned {
		return extend(in, sites, gpus, demands)
	}
	l := newLayout(sites, gpus)
	// The easiest roles are kept first: a member that grew is usually the largest, and it is the one to move.
	for _, d := range slices.Backward(demands) {
		l.keep(d, in.Current)
	}
	for _, d := range slices.Backward(demands) {
		l.complete(d)
	}
	if l.fillAll(demands) {
		return l, nil
	}

	var ps domain.Problems
	l = newLayout(sites, gpus)
	for _, d := range demands {
		l.keep(d, in.Current)
		l.complete(d)
		if !l.fill(d) {
			ps = append(ps, explain(in.Group.Cluster, d, l)...)
		}
	}
	if len(ps) > 0 {
		if found := search(in, sites, gpus, demands); found != nil {
			return found, nil
		}
	}
	return l, ps
}

// extend gives a host to every member that has none.
func extend(in Input, sites []site, gpus *fleet, demands []*demand) (*layout, domain.Problems) {
	l := newLayout(sites, gpus)
	for _, d := range demands {
		l.pin(d, in.Current)
	}
	var ps domain.Problems
	for _, d := range demands {
		if !l.fill(d) {
			ps = append(ps, explain(in.Group.Cluster, d, l)...)
		}
	}
	return l, ps
}
