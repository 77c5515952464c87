package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// checkPools returns a problem for each role that asks for devices of an unknown pool.
func checkPools(in Input, roles []string) domain.Problems {
	var ps domain.Problems
	for _, role := range roles {
		request := in.Group.Roles[role].GPUs
		if request == nil {
			continue
		}
		at := domain.Path{"roles", domain.Key(role), "gpus", "pool"}
		if _, found := in.Pools[request.Pool]; !found && len(in.Pools) == 0 {
			ps.Add(at, "Unknown GPU pool",
				"cluster %q has no GPU pool %q, nor any other; declare a trainyard_gpu_pool, and refer to it",
				in.Group.Cluster, request.Pool)
		} else if !found {
			ps.Add(at, "Unknown GPU pool", "cluster %q has no GPU pool %q; its pools are %s", in.Group.Cluster,
				request.Pool, strings.Join(slices.Sorted(maps.Keys(in.Pools)), ", "))
		}
	}
	return ps
}

// warn reports which members get devices that others use.
func warn(in Input, demands []*demand, l *layout) domain.Problems {
	var ps domain.Problems
	for _, d := range demands {
		var given []string
		for _, m := range d.members {
			had := in.Current[m.Name].GPUs.UUIDs()
			for _, i := range l.spots[m.Name].gpus {
				if l.fleet.worries(d.gpus, i) && !slices.Contains(had, l.fleet.devices[i].UUID) {
					given = append(given, fmt.Sprintf("%s gets %s of host %s, used by %s", m.Name, l.fleet.name(i),
						l.sites[l.spots[m.Name].site].name, l.fleet.devices[i].Busy))
				}
			}
		}
		if len(given) > 0 {
			ps.Warn(d.path("gpus"), "GPU in use", "members of role %q get GPUs of pool %q that other processes use, "+
				"and share their memory and time: %s; stop those processes, or set on_foreign_process = %q in the "+
				"pool to avoid these GPUs",
				d.role, d.gpus.name, shorten(given, "; "), domain.ForeignAvoid)
		}
	}
	return ps
}

// explainBeyond says why none of the allowed hosts has the devices that a member asks for, even if all were free.
func explainBeyond(d *demand, l *layout) domain.Problems {
	var ps domain.Problems
	c, suited, largest := d.gpus, 0, -1
	var counts, elsewhere []string
	for at, devices := range c.pool.bySite {
		s := &l.sites[at]
		if !s.allows(d.spec.Placement) {
			if len(devices) > 0 {
				elsewhere = append(elsewhere, s.name)
			}
			continue
		}
		if n := len(l.fleet.suited(c, at)); n > 0 {
			counts = append(counts, fmt.Sprintf("host %s has %d", s.name, n))
			suited += n
		}
		for _, i := range devices {
			if largest < 0 || l.fleet.devices[i].MemoryMiB > l.fleet.devices[largest].MemoryMiB {
				largest = i
			}
		}
	}
	switch {
	case largest >= 0 && suited == 0:
		purpose, most := "", formatMemory(l.fleet.devices[largest].MemoryMiB)
		if !c.pool.exclusive {
			purpose = " for its " + formatMemory(c.memory)
			most = fmt.Sprintf("%s (%s, of which %s %% are reserved)", count(c.pool.slots[largest], "slot"), most,
				formatNumber(100*c.pool.spec.Reserve()))
		}
		ps.Add(d.path("gpus", "memory_mib"), "Request beyond any device",
			"%s asks for %s%s, and the largest on the hosts that it may use, %s, has %s; lower memory_mib, or ask "+
				"for larger GPUs",
			d.each(), c, purpose, l.fleet.name(largest), most)
	case len(counts) > 0:
		ps.Add(d.path("gpus", "count"), "Request beyond any host",
			"%s asks for %s, all on one host, and of those that it may use, %s; lower count, add devices to the "+
				"pool, or let the role use other hosts",
			d.each(), c, shorten(counts, ", "))
	case len(elsewhere) > 0:
		ps.Add(d.path("gpus", "count"), "Request beyond any host",
			"%s asks for %s, and the hosts that it may use have 0; the pool's are on %s: let the role use those, or "+
				"add devices to the pool",
			d.each(), c, shorten(elsewhere, ", "))
	default:
		ps.Add(d.path("gpus", "count"), "Request beyond any host",
			"%s asks for %s, and the pool has no devices; add some to it", d.each(), c)
	}
	return ps
}

// explainGPUs says why the devices of a pool are too few for the members of a role.
func explainGPUs(cluster string, d *demand, l *layout) domain.Problems {
	var ps domain.Problems
	v := inventory{d, l, l.holders(d)}
	if d.isRun {
		ps.Add(d.path("gpus"), "Not enough GPUs", "%s asks for %s; %s%s", d.each(), d.gpus, list(d.allowed, v.host),
			closedOf(l, d))
		return ps
	}
	limit := ""
	if d.strategy == domain.OnePerHost {
		limit = ", at most one per host"
	}
	ps.Add(d.path("gpus"), "Not enough GPUs", "role %q has %s of %s each%s, and only %d of them fit; %s: %s%s; %s",
		d.role, count(len(d.members), "member"), d.gpus, limit, l.placed(d), hostsOf(cluster, d),
		list(d.allowed, v.host), closedOf(l, d), v.advice())
	return ps
}

// holders returns who else holds what of each device. The role's own members are left out, as what they have is what
// they have to fit into.
func (l *layout) holders(d *demand) map[int][]holder {
	all := maps.Clone(l.fleet.others)
	for _, member := range slices.Sorted(maps.Keys(l.spots)) {
		s := l.spots[member]
		if s.demand == d {
			continue
		}
		for _, i := range s.gpus {
			all[i] = append(slices.Clip(all[i]),
				holder{member, s.demand.role, "", s.demand.gpus.takes(&l.fleet.devices[i])})
		}
	}
	return all
}

// inventory describes the devices that a role asks for.
type inventory struct {
	demand *demand
	*layout
	holders map[int][]holder
}

// host says how many devices of a site are free, and why the others are not.
func (v inventory) host(at *int) string {
	free, devices := 0, v.fleet.suited(v.demand.gpus, *at)
	var reasons []string
	text := "host " + v.sites[*at].name + ": "
	for _, i := range devices {
		why := v.device(i)
		if why == "" {
			free++
		} else {
			reasons = append(reasons, v.fleet.name(i)+why)
		}
	}
	if v.demand.gpus.pool.exclusive {
		text += fmt.Sprintf("%d of %s free", free, count(len(devices), "GPU"))
		if len(reasons) > 0 {
			text += ", "
		}
	}
	return text + shorten(reasons, ", ")
}

// device says why a device is not free, or how much of it is; "" if there is nothing to add.
func (v inventory) device(i int) string {
	p, device, holders := v.demand.gpus.pool, &v.fleet.devices[i], v.holders[i]
	switch {
	case device.Lost != "":
		return " can't be used: " + device.Lost
	case p.exclusive && len(holders) > 0:
		return " held by " + holders[0].String()
	case p.exclusive && device.taken > 0: // by the role itself
		return ""
	case device.Closed != "":
		return " takes no new members: " + device.Closed
	case v.avoided(i):
		return " used by " + device.Busy
	case p.exclusive:
		return ""
	}
	taken := int64(0)
	for _, h := range holders {
		taken += h.mib
	}
	free := p.free(i, taken)
	text := fmt.Sprintf(": %d of %s free", free, count(p.slots[i], "slot"))
	if len(holders) > 0 {
		text += " (" + v.parties(i) + ")"
	}
	return text
}

// avoided reports whether a device is not given to new members because somebody else uses it.
func (v inventory) avoided(i int) bool {
	return v.fleet.devices[i].Busy != "" && v.demand.gpus.pool.spec.ForeignRule() == domain.ForeignAvoid
}

// parties says how many slots of a device each of the other groups and roles holds.
func (v inventory) parties(i int) string {
	slots := map[string]int{}
	p := v.demand.gpus.pool
	for _, h := range v.holders[i] {
		slots[h.party()] += p.slots[i] - p.free(i, h.mib)
	}
	parties := slices.SortedFunc(maps.Keys(slots),
		func(a, b string) int { return cmp.Or(cmp.Compare(slots[b], slots[a]), cmp.Compare(a, b)) })
	for i, party := range parties {
		parties[i] = fmt.Sprintf("%d held by %s", slots[party], party)
	}
	return shorten(parties, ", ")
}

// advice says what the user can do.
func (v inventory) advice() string {
	held, used := "", ""
	for _, at := range v.demand.allowed {
		for _, i := range v.fleet.suited(v.demand.gpus, at) {
			if slices.ContainsFunc(v.holders[i], func(h holder) bool { return h.group != "" }) {
				held = ", destroy what holds them"
			}
			if v.avoided(i) {
				used = ", stop what uses them"
			}
		}
	}
	return "lower replicas" + held + used + ", or add devices to the pool"
}

// String names a holder of an exclusive device.
func (h holder) String() string {
	if h.group == "" {
		return h.member
	}
	return fmt.Sprintf("%s of group %s", h.member, h.group)
}

// party names the group or role that a holder of slots belongs to.
func (h holder) party() string {
	if h.group == "" {
		return fmt.Sprintf("role %q", h.role)
	}
	return "group " + h.group
}

// String says what each member asks for.
func (c *claim) String() string {
	gpus := fmt.Sprintf("%s of pool %q", count(c.count, "GPU"), c.name)
	slots := fmt.Sprintf("%s of %s", count(c.slots, "slot"), formatMemory(c.pool.size))
	switch {
	case c.pool.exclusive && c.memory > 0:
		return fmt.Sprintf("%s with %s or more", gpus, formatMemory(c.memory))
	case c.pool.exclusive:
		return gpus
	case c.count > 1:
		return gpus + " with " + slots
	}
	return slots + " on " + gpus
}

// set returns a member's devices as a set of UUIDs.
func (f *fleet) set(gpus []int) domain.DeviceSet {
	uuids := make([]string, len(gpus))
	for n, i := range gpus {
		uuids[n] = f.devices[i].UUID
	}
	return domain.NewDeviceSet(uuids...)
}

// name returns the first characters of a device's UUID, or all of it if another device begins with the same.
func (f *fleet) name(i int) string {
	const first = len("GPU-4fa6a2a8")
	uuid := f.devices[i].UUID
	short := uuid[:min(len(uuid), first)]
	for n := range f.devices {
		if n != i && strings.HasPrefix(f.devices[n].UUID, short) {
			return uuid
		}
	}
	return short
}
