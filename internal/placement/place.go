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

// Input is all that placement looks at.
type Input struct {
	Group domain.Group
	// Members are the group's members as topology lays them out: name, role and index.
	Members []domain.Member
	// Current is where members are now, by name; they are kept there where that is still allowed.
	Current map[string]domain.Assignment
	// Hosts are the cluster's hosts by name.
	Hosts map[string]domain.Host
	// SharedAddress says that members are reached at their host's address, so that those on hosts of one
	// address share its ports; otherwise each member has all ports to itself.
	SharedAddress bool
	// Images says that members with an image run in containers also where they share addresses: they publish ports.
	Images bool
	// BusyPorts are the ports on which something listens now, by address; running members' own included.
	BusyPorts map[string][]int
	// Closed are the hosts that take no new members, and why in words such as "host gpu1 is down". Members that are
	// there stay.
	Closed map[string]string
	// Reserved is what others than the cluster's groups have reserved, by host.
	Reserved map[string]domain.Resources
	// FreeMiB is how much memory is measured to be free, by host: new members take no more of it. Hosts that are not in
	// it are not measured.
	FreeMiB map[string]int64
	// Most bounds how many members of a [Fill] a host or a device takes, by name or UUID; those that are not in it take
	// as many as fit.
	Most map[string]int
	// Room is the number of members, of all groups, for which the cluster's network has addresses; 0 sets no bound.
	Room int
	// Pools are the documents of the cluster's GPU pools by name.
	Pools map[string]domain.GPUPoolDocument
	// Devices is what there is to say of the devices of pools, by UUID; those about which there is nothing are left
	// out.
	Devices map[string]DeviceState
	// Pinned has all members stay that have a place, whatever is to be said of it: only the others are placed.
	Pinned bool
	// Staying are the members that keep devices that are lost, as no others can be had for them, or nobody asked that
	// they leave them.
	Staying map[string]bool
	// Groups are the documents of the cluster's groups by name. What the members of other groups request and the ports
	// assigned to them are taken; that of the group itself tells what its members requested so far.
	Groups map[string]domain.GroupDocument
}

// Place returns the host, port and GPUs of every member by its name, beside warnings, or the problems that are in the
// way.
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
		assignments[member] = domain.Assignment{Host: l.sites[s.site].name, Port: ports[member], GPUs: l.fleet.set(s.gpus)}
		if s.pinned {
			assignments[member] = in.Current[member]
		}
	}
	return assignments, warn(in, demands, l)
}

func noHosts(in Input) (ps domain.Problems) {
	ps.Add(domain.Path{"cluster"}, "No hosts", "cluster %q has no hosts to place members on; declare at least one", in.Group.Cluster)
	return ps
}

// checkInput returns what keeps members from being placed, wherever it were.
func checkInput(in Input, others []neighbour) domain.Problems {
	ps := checkRoles(in, in.Group.RoleNames())
	isNew := func(m domain.Member) bool { _, placed := in.Current[m.Name]; return !placed }
	if in.Room > 0 && len(in.Members)+len(others) > in.Room && slices.ContainsFunc(in.Members, isNew) {
		ps.Add(domain.Path{"roles"}, "Not enough addresses",
			"the network of cluster %q has addresses for %s, and group %q would have %d beside the %d of other groups; lower replicas, or give the cluster a larger network.subnet",
			in.Group.Cluster, count(in.Room, "member"), in.Group.Name, len(in.Members), len(others))
	}
	return ps
}

// checkRoles checks that roles name hosts and pools that there are.
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
	// The easiest roles are kept first: the member that grew is mostly the largest, and it is the one to move.
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

// extend gives every member a host that has none.
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
