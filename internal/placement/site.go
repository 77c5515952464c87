package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// cpuTolerance absorbs the rounding of sums of fractional CPUs: ten times 0.1 fits into 1.
const cpuTolerance = 1e-6

// site is a host and what is in use of it.
type site struct {
	name string
	host domain.Host
	// closed says why it takes no new members; "" if it does.
	closed string
	// used is what the members of all groups request, and reserved what others have reserved. entered is the part of
	// used that has to fit alongside reserved: the requests of the group's new members, and of those that grew.
	used, reserved, entered domain.Resources
	// measured is how much memory was free before new members came; nil if it was not measured.
	measured *int64
	// members counts the members of all groups.
	members int
	// published are the members that publish ports of the host, by port, such as "8080/tcp".
	published map[string]string
}

// survey returns the hosts sorted by name, with what the members of other groups use.
func survey(in Input, others []neighbour) []site {
	sites := make([]site, 0, len(in.Hosts))
	at := make(map[string]int, len(in.Hosts))
	for _, name := range slices.Sorted(maps.Keys(in.Hosts)) {
		at[name] = len(sites)
		s := site{
			name: name, host: in.Hosts[name], closed: in.Closed[name], reserved: in.Reserved[name],
			published: map[string]string{},
		}
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

// largest returns the largest CPU and the largest memory capacity among the sites, not necessarily of the same site.
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

// enter records a member that has to fit alongside what others have reserved.
func (s *site) enter(r domain.Resources) {
	s.entered.CPUs += r.CPUs
	s.entered.MemoryMiB += r.MemoryMiB
}

// remove undoes add, and leave undoes enter.
func (s *site) remove(r domain.Resources) {
	s.used.CPUs -= r.CPUs
	s.used.MemoryMiB -= r.MemoryMiB
	s.members--
}

func (s *site) leave(r domain.Resources) {
	s.entered.CPUs -= r.CPUs
	s.entered.MemoryMiB -= r.MemoryMiB
}

// free returns what is left of the host's capacity. It is negative if the capacity was lowered below its use.
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

// lacks reports which resources the host has too little of for a member. What is not requested is never lacking.
func (s *site) lacks(r domain.Resources) (cpus, memory bool) {
	free := s.free()
	return r.CPUs > 0 && r.CPUs > free.CPUs+cpuTolerance, r.MemoryMiB > 0 && r.MemoryMiB > free.MemoryMiB
}

// fits reports whether the host has room for one more member.
func (s *site) fits(r domain.Resources) bool {
	cpus, memory := s.lacks(r)
	return !cpus && !memory
}

// keeps reports whether the host has room for a member that is already there. What others have reserved was reserved
// alongside it, and only counts if new members of the group take what was left.
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

// publish records that a member publishes ports of the host.
func (s *site) publish(ports []string, member string) {
	for _, port := range ports {
		s.published[port] = member
	}
}

// withdraw undoes publish.
func (s *site) withdraw(ports []string) {
	for _, port := range ports {
		delete(s.published, port)
	}
}

// blocked returns the first of the ports that a member on the host already publishes, and that member.
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

// Allows reports whether a placement allows a host, whatever its capacity.
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
	// gpus are what its role asks of a GPU pool; nil for none.
	gpus *domain.GPURequest
	// ports are the host ports that it publishes.
	ports []string
}

// neighbours returns the members of all groups except one, sorted by group and name.
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
			all = append(all, neighbour{
				group, role, member, document.Assignments[member], spec.Resources.Requests(), spec.GPUs, ports[role],
			})
		}
	}
	return all
}

// published returns the host ports that each member of a role publishes, sorted. Plain programs publish none.
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

// roleOf extracts the role from a member's name, see [domain.MemberName].
func roleOf(group, member string) string {
	name := strings.TrimPrefix(member, group+"-")
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		return name[:i]
	}
	return name
}
