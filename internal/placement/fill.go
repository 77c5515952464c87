package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// resting says why a device takes no further member of the same [Fill]. filled says it of a device or host that has
// reached its number in [Input.Most].
const (
	resting = "it has just been given to another run"
	filled  = "the maximum number of these runs"
)

// Fill places as many of the members as there is room for alongside everything that runs, in the order of their roles
// where those are equally hard to place, and returns their assignments. What runs stays where it is, the group's own
// members included: those are taken from [Input.Groups], and [Input.Current] is ignored. The problem says why the first
// member without a place has none.
//
// The new members are spread together with those that run, whatever their roles.
//
// In a gentle fill, each device takes only one new member: whether more fit depends on how much that one uses.
func Fill(in Input, gentle bool) (map[string]domain.Assignment, domain.Problems) {
	if len(in.Hosts) == 0 {
		return nil, noHosts(in)
	}
	if ps := checkRoles(in, in.Group.RoleNames()); len(ps) > 0 {
		return nil, ps
	}
	others := neighbours(in, "")
	in.Current = nil
	sites := survey(in, others)
	gpus := newFleet(in, sites, others)
	demands := demandsOf(in, sites, gpus)
	l := newLayout(sites, gpus)
	left := maps.Clone(in.Most)
	l.closeFull(left)
	for _, d := range demands {
		d.isRun = true
	}
	l.enrollRunning(in.Group.Name, demands, others)
	var short domain.Problems
	for _, d := range demands {
		d.members = slices.DeleteFunc(d.members, func(m domain.Member) bool {
			if in.Room > 0 && len(l.spots)+len(others) >= in.Room {
				if len(short) == 0 {
					short.Add(domain.Path{"roles"}, "Not enough addresses",
						"the network of cluster %q has addresses for %s, and all are taken; give the cluster a "+
							"larger network.subnet", in.Group.Cluster, count(in.Room, "member"))
				}
				return true
			}
			if !l.place(d, m) {
				if len(short) == 0 {
					short = explain(in.Group.Cluster, d, l)
				}
				return true
			}
			l.take(l.spots[m.Name], left)
			if gentle {
				for _, i := range l.spots[m.Name].gpus {
					l.fleet.devices[i].Closed = resting
				}
			}
			return false
		})
	}
	ports, ps := assignPorts(in, others, demands, l)
	if len(ps) > 0 {
		return nil, ps
	}
	assignments := make(map[string]domain.Assignment, len(l.spots))
	for member, s := range l.spots {
		assignments[member] = domain.Assignment{
			Host: l.sites[s.site].name, Port: ports[member], GPUs: l.fleet.set(s.gpus),
		}
	}
	return assignments, short
}

// take closes the sites and devices that have become full by a placed member. left holds how many more members a
// limited site or device takes, by name.
func (l *layout) take(s spot, left map[string]int) {
	names := []string{l.sites[s.site].name}
	for _, i := range s.gpus {
		names = append(names, l.fleet.devices[i].UUID)
	}
	for _, name := range names {
		if n, bounded := left[name]; bounded {
			left[name] = n - 1
		}
	}
	l.closeFull(left)
}

func (l *layout) closeFull(left map[string]int) {
	full := func(name string) bool {
		n, bounded := left[name]
		return bounded && n <= 0
	}
	for i := range l.sites {
		if s := &l.sites[i]; s.closed == "" && full(s.name) {
			s.closed = fmt.Sprintf("host %s has %s", s.name, filled)
		}
	}
	for i := range l.fleet.devices {
		if d := &l.fleet.devices[i]; d.Closed == "" && full(d.UUID) {
			d.Closed = "it has " + filled
		}
	}
}

// enrollRunning counts the running members of a group among those that its new ones are spread with.
func (l *layout) enrollRunning(group string, demands []*demand, running []neighbour) {
	crews := map[crew]bool{}
	for _, d := range demands {
		if crews[d.crew()] {
			continue
		}
		crews[d.crew()] = true
		for _, n := range running {
			if at, found := l.byName[n.assignment.Host]; found && n.group == group {
				l.enroll(d, at, 1)
			}
		}
	}
}
