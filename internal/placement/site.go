package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// cpuTolerance absorbs the rounding of sums of fractions of CPUs: ten times 0.1 fits into 1.
const cpuTolerance = 1e-6

// site is a host and what is in use of it.
type site struct {
	name string
	host domain.Host
	// closed says why it takes no new members; empty where it does.
	closed string
	// used is what the members of all groups request, reserved what others have reserved, and entered what of used has
	// to fit in beside that: the requests of the group's new members, and of those that grew.
	used, reserved, entered domain.Resources
	// measured is how much memory was found to be free before new members came; nil where nobody measured.
	measured *int64
	// members counts the members of all groups.
	members int
	// published are the members that publish ports of the host, by the port, such as "8080/tcp".
	published map[string]string
}

// survey returns the hosts sorted by name, in use by the members of other groups.
func survey(in Input, others []neighbour) []site {
	sites := make([]site, 0, len(in.Hosts))
	at := make(map[string]int, len(in.Hosts))
	for _, name := range slices.Sorted(maps.Keys(in.Hosts)) {
		at[name] = len(sites)
		s := site{name: name, host: in.Hosts[name], closed: in.Closed[name], reserved: in.Reserved[name], published: map[string]string{}}
		if free, known := in.FreeMiB[name]; known {
			s.measured = &free
		}
		sites = append(sites, s)
	}
	for _, n := range others {
		if i, found := at[n.assignment.Host]; found {
			sites[i].add(n.requests)
			sites[i].publish(n.ports, fmt.Sprintf("%s of group %s", n.member, n.group))
		}
	}
	return sites
}

// largest returns the largest capacity of CPUs and of memory among the sites, not necessarily of one of them.
func largest(sites []site) domain.Capacity {
	var c domain.Capacity
	for i := range sites {
		c.CPUs = max(c.CPUs, sites[i].host.Capacity.CPUs)
		c.MemoryMiB = max(c.MemoryMiB, sites[i].host.Capacity.MemoryMiB)
	}
	return c
}

func (s *site) add(r domain.Resources) {
	s.used.CPUs += r.CPUs
	s.used.MemoryMiB += r.MemoryMiB
	s.members++
}

// enter notes a member that has to fit in beside what others have reserved.
func (s *site) enter(r domain.Resources) {
	s.entered.CPUs += r.CPUs
	s.entered.MemoryMiB += r.MemoryMiB
}

// remove takes back what add did, and leave what enter did.
func (s *site) remove(r domain.Resources) {
	s.used.CPUs -= r.CPUs
	s.used.MemoryMiB -= r.MemoryMiB
	s.members--
}

func (s *site) leave(r domain.Resources) {
	s.entered.CPUs -= r.CPUs
	s.entered.MemoryMiB -= r.MemoryMiB
}

// free is what is left of the host's capacity; it is negative where the capacity was lowered below its use.
func (s *site) free() domain.Resources {
	free := domain.Resources{
		CPUs:      s.host.Capacity.CPUs - s.used.CPUs - s.reserved.CPUs,
		MemoryMiB: s.host.Capacity.MemoryMiB - s.used.MemoryMiB - s.reserved.MemoryMiB,
	}
	if s.measured != nil {
		free.MemoryMiB = min(free.MemoryMiB, *s.measured-s.entered.MemoryMiB)
	}
	return free
}

// lacks tells of which resources the host has too little free for a member. What is not requested is never lacking.
func (s *site) lacks(r domain.Resources) (cpus, memory bool) {
	free := s.free()
	return r.CPUs > 0 && r.CPUs > free.CPUs+cpuTolerance, r.MemoryMiB > 0 && r.MemoryMiB > free.MemoryMiB
}

// fits reports whether the host has room for one more member.
func (s *site) fits(r domain.Resources) bool {
	cpus, memory := s.lacks(r)
	return !cpus && !memory
}

// keeps reports whether the host has room for a member that is there already: what others have reserved was reserved
// beside it, and is in its way only where new members of the group take what was left.
func (s *site) keeps(r domain.Resources) bool {
	own := *s
	if s.entered.CPUs < cpuTolerance {
		own.reserved.CPUs = 0
	}
	if s.entered.MemoryMiB == 0 {
		own.reserved.MemoryMiB = 0
	}
	return own.fits(r)
}

// publish notes that a member publishes ports of the host.
func (s *site) publish(ports []string, member string) {
	for _, port := range ports {
		s.published[port] = member
	}
}

// withdraw takes back what publish did.
func (s *site) withdraw(ports []string) {
	for _, port := range ports {
		delete(s.published, port)
	}
}

// blocked returns the first of the ports that a member on the host publishes already, and whose it is.
func (s *site) blocked(ports []string) (port, by string, is bool) {
	for _, port := range ports {
		if by, taken := s.published[port]; taken {
			return port, by, true
		}
	}
	return "", "", false
}

// allows reports whether the role's members may be on the host, whatever its capacity.
func (s *site) allows(p domain.Placement) bool { return Allows(p, s.name, s.host) }

// Allows reports whether a host is one that will do, whatever its capacity.
func Allows(p domain.Placement, name string, host domain.Host) bool {
	if len(p.Hosts) > 0 && !slices.Contains(p.Hosts, name) {
		return false
	}
	for key, value := range p.Labels {
		if has, found := host.Labels[key]; !found || has != value {
			return false
		}
	}
	return true
}

// neighbour is a placed member of another group.
type neighbour struct {
	group, role, member string
	assignment          domain.Assignment
	requests            domain.Resources
	// gpus are what its role asks of a GPU pool; nil for nothing.
	gpus *domain.GPURequest
	// ports are those of its host that it publishes.
	ports []string
}

// neighbours returns the members of all groups but one, sorted by group and name.
func neighbours(in Input, but string) []neighbour {
	var all []neighbour
	for _, group := range slices.Sorted(maps.Keys(in.Groups)) {
		if group == but {
			continue
		}
		document := in.Groups[group]
		ports := map[string][]string{}
		for role := range document.Spec.Roles {
			ports[role] = published(in, document.Spec, role)
		}
		for _, member := range slices.Sorted(maps.Keys(document.Assignments)) {
			role := roleOf(group, member)
			spec := document.Spec.Roles[role]
			all = append(all, neighbour{group, role, member, document.Assignments[member], spec.Resources.Requests(), spec.GPUs, ports[role]})
		}
	}
	return all
}

// published returns the ports of its host that each member of a role publishes, sorted. Plain programs publish none.
func published(in Input, g domain.Group, role string) []string {
	template := g.EffectiveTemplate(role)
	if template.Container == nil || in.SharedAddress && (!in.Images || template.Image == "") {
		return nil
	}
	var ports []string
	for _, port := range template.Container.Ports {
		ports = append(ports, port.String())
	}
	slices.Sort(ports)
	return ports
}

// roleOf takes the role out of a member's name, see [domain.MemberName].
func roleOf(group, member string) string {
	name := strings.TrimPrefix(member, group+"-")
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		return name[:i]
	}
	return name
}
