package placement

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Ports for roles that omit theirs come from a range below Linux's ephemeral ports (32768 and above).
const (
	firstFreePort = 20000
	lastFreePort  = 29999
	highestPort   = 65535
)

// assignPorts gives every member of a complete layout its port, by name.
//
// With a port P, a role's members at one address get P, P+1, … by index, and keep them as long as they stay there and P
// is the same. Without one, members keep the ports they have, and new ones get the lowest free ones at their address.
func assignPorts(in Input, others []neighbour, demands []*demand, l *layout) (map[string]int, domain.Problems) {
	a := portAssigner{
		in:     in,
		layout: l,
		ports:  make(map[string]int, len(in.Members)),
	}
	byRole := slices.SortedFunc(slices.Values(demands), func(a, b *demand) int { return cmp.Compare(a.role, b.role) })
	if !in.SharedAddress {
		for _, d := range byRole {
			a.private(d)
		}
		return a.ports, a.problems
	}
	a.survey(others)
	for _, d := range byRole {
		if d.spec.Port != nil {
			a.fixed(d, *d.spec.Port)
		}
	}
	for _, d := range byRole {
		if d.spec.Port == nil {
			a.keep(d)
		}
	}
	for _, d := range byRole {
		if d.spec.Port == nil {
			a.free(d)
		}
	}
	return a.ports, append(a.problems, a.clashes.problems(in.Group)...)
}

type portAssigner struct {
	in       Input
	layout   *layout
	ports    map[string]int
	problems domain.Problems
	clashes  clashes
	books    map[string]*book
}

// book holds who has which port at one address.
type book struct {
	// own are the ports assigned to this group's members so far.
	own map[int]*domain.Member
	// others are the ports of other groups' members.
	others map[int]neighbour
	// current are the ports of this group's members before this placement.
	current map[int]bool
	// busy are the ports on which something listens, including this group's members.
	busy map[int]bool
	// published are the members that publish ports here, by port.
	published map[int]string
	// next is where the search for a free port continues.
	next int
}

// foreign reports whether something outside Trainyard is known to listen on a port.
func (b *book) foreign(port int) bool { return b.busy[port] && !b.current[port] }

// publisher returns the member, other than this one, that publishes a port; "" for none.
func (b *book) publisher(port int, member string) string {
	if by := b.published[port]; by != member {
		return by
	}
	return ""
}

// survey opens a book for each address.
func (a *portAssigner) survey(others []neighbour) {
	a.books = map[string]*book{}
	for _, host := range a.in.Hosts {
		if a.books[host.MemberAddress()] != nil {
			continue
		}
		b := &book{
			own: map[int]*domain.Member{}, others: map[int]neighbour{}, current: map[int]bool{}, busy: map[int]bool{},
			published: map[int]string{}, next: firstFreePort,
		}
		for _, port := range a.in.BusyPorts[host.MemberAddress()] {
			b.busy[port] = true
		}
		a.books[host.MemberAddress()] = b
	}
	for _, n := range others {
		if host, found := a.in.Hosts[n.assignment.Host]; found {
			a.books[host.MemberAddress()].others[n.assignment.Port] = n
		}
	}
	for _, s := range a.layout.sites {
		for port, by := range s.published {
			if number, isTCP := strings.CutSuffix(port, "/tcp"); isTCP {
				n, _ := strconv.Atoi(number) // [domain.PublishedPort.String] wrote it
				a.books[s.host.MemberAddress()].published[n] = by
			}
		}
	}
	for _, assignment := range a.in.Current {
		if host, found := a.in.Hosts[assignment.Host]; found {
			a.books[host.MemberAddress()].current[assignment.Port] = true
		}
	}
}

func (a *portAssigner) address(m domain.Member) string {
	return a.layout.sites[a.layout.spots[m.Name].site].host.MemberAddress()
}

// private gives all members of a role the same port, as each has its own address.
func (a *portAssigner) private(d *demand) {
	port := firstFreePort
	if d.spec.Port != nil {
		port = *d.spec.Port
	}
	if port > highestPort {
		a.outOfRange(d, port, 1, "")
	}
	for _, m := range d.members {
		a.ports[m.Name] = port
	}
}

// fixed counts up from the role's port at each address, skipping ports that members keep, and records the clashes.
func (a *portAssigner) fixed(d *demand, first int) {
	kept, given := a.unmoved(d, first)
	next, byAddress, highest := map[string]int{}, map[string]int{}, map[string]int{}
	for i, m := range d.members {
		address := a.address(m)
		port, found := kept[m.Name]
		if !found {
			for given[endpoint{address, first + next[address]}] {
				next[address]++
			}
			port = first + next[address]
			next[address]++
		}
		byAddress[address]++
		highest[address] = max(highest[address], port)
		if port > highestPort {
			continue
		}
		a.ports[m.Name] = port
		b := a.books[address]
		switch other, taken := b.own[port]; {
		case taken:
			a.clashes.add(clash{demand: d, kind: withRole, party: other.Role}, address, port, m.Name, other.Name)
		case b.others[port].member != "":
			a.clashes.add(clash{demand: d, kind: withGroup, party: b.others[port].group}, address, port, m.Name,
				b.others[port].member)
		case b.publisher(port, m.Name) != "":
			a.clashes.add(clash{demand: d, kind: withPublisher}, address, port, m.Name, b.publisher(port, m.Name))
		case b.foreign(port):
			a.clashes.add(clash{demand: d, kind: withListener}, address, port, m.Name, "")
		}
		if _, taken := b.own[port]; !taken {
			b.own[port] = &d.members[i]
		}
	}
	for _, address := range slices.Sorted(maps.Keys(byAddress)) {
		if highest[address] > highestPort {
			a.outOfRange(d, first, byAddress[address], address)
			return
		}
	}
}

// endpoint is a port at an address.
type endpoint struct {
	address string
	port    int
}

// unmoved returns the ports of members at an unchanged address in a role with an unchanged first port, and those
// endpoints. Removed members may have left gaps between them.
func (a *portAssigner) unmoved(d *demand, first int) (ports map[string]int, given map[endpoint]bool) {
	before := a.in.Groups[a.in.Group.Name].Spec.Roles[d.role].Port
	if before == nil || *before != first {
		return nil, nil
	}
	ports, given = map[string]int{}, map[endpoint]bool{}
	for _, m := range d.members {
		current, address := a.in.Current[m.Name], a.address(m)
		at := endpoint{address, current.Port}
		if host, found := a.in.Hosts[current.Host]; found && host.MemberAddress() == address && current.Port >= first &&
			!given[at] {
			ports[m.Name], given[at] = current.Port, true
		}
	}
	return ports, given
}

func (a *portAssigner) outOfRange(d *demand, first, n int, address string) {
	if n == 1 {
		a.problems.Add(d.path("port"), "Port out of range", "role %q has port %d; the highest port is %d", d.role,
			first, highestPort)
		return
	}
	a.problems.Add(d.path("port"), "Port out of range",
		"the %d members of role %q at %s need the ports %d to %d, one each; the highest port is %d: start at "+
			"%d or lower",
		n, d.role, address, first, first+n-1, highestPort, highestPort-n+1)
}

// keep leaves members at an unchanged address their ports, unless somebody else has them by now.
func (a *portAssigner) keep(d *demand) {
	for i, m := range d.members {
		current := a.in.Current[m.Name]
		address := a.address(m)
		if host, found := a.in.Hosts[current.Host]; !found || host.MemberAddress() != address {
			continue
		}
		b := a.books[address]
		_, own := b.own[current.Port]
		_, other := b.others[current.Port]
		if !own && !other && b.publisher(current.Port, m.Name) == "" {
			b.own[current.Port] = &d.members[i]
			a.ports[m.Name] = current.Port
		}
	}
}

// free gives members without a port the lowest free one. Ports that this group's members had before are skipped, as a
// leaving member may still listen there.
func (a *portAssigner) free(d *demand) {
	full := map[string]bool{}
	for i, m := range d.members {
		if a.ports[m.Name] != 0 {
			continue
		}
		address := a.address(m)
		port, found := a.books[address].take(&d.members[i])
		if !found && !full[address] {
			full[address] = true
			a.problems.Add(d.path("port"), "No free port",
				"all ports from %d to %d at %s are taken, and member %s needs one; set the role's port outside of "+
					"that range, or free some",
				firstFreePort, lastFreePort, address, m.Name)
		}
		a.ports[m.Name] = port
	}
}

func (b *book) take(m *domain.Member) (port int, found bool) {
	for ; b.next <= lastFreePort; b.next++ {
		_, own := b.own[b.next]
		_, other := b.others[b.next]
		if !own && !other && !b.busy[b.next] && !b.current[b.next] && b.publisher(b.next, m.Name) == "" {
			b.own[b.next] = m
			return b.next, true
		}
	}
	return 0, false
}
