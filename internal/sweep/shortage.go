package sweep

import (
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// shortage is a sweep without room, and what it waits for.
type shortage struct {
	sweep string
	// devices are those that it could use, by UUID, if it lacks devices; otherwise it lacks something else of hosts,
	// the ones that it could use.
	devices, hosts map[string]bool
}

// keep records that a sweep has no room for a run because of what others occupy, so that those behind it do not take
// that, too. A run that would not even fit on an empty cluster keeps nobody waiting.
func (d *decision) keep(s domain.Sweep, key string) {
	in := alone(s, d.cluster)
	in.Closed, in.Reserved, in.Devices = d.cluster.Closed, d.cluster.Reserved,
		tooSmall(s, d.cluster.Pools, d.cluster.Devices)
	if _, short := placement.Fill(in, false); len(short) > 0 {
		return
	}
	lacks := shortage{sweep: s.Name, hosts: HostsFor(s, d.cluster)}
	if s.GPUs != nil && !d.hasDevices(s, key) {
		lacks = shortage{sweep: s.Name, devices: devicesFor(s, d.cluster)}
	}
	d.short = append(d.short, d.withoutFull(s, lacks))
}

// alone returns the placement input for a run of a sweep on a cluster where nothing else runs.
func alone(s domain.Sweep, c Cluster) placement.Input {
	const key = "run"
	g := GroupOf(s, key)
	g.Name = "sweep"
	return placement.Input{
		Group: g, Members: []domain.Member{{Name: domain.RunName(g.Name, key), Role: key}}, Hosts: c.Hosts,
		SharedAddress: c.SharedAddress, Images: c.Images, Pools: c.Pools,
	}
}

// hasDevices reports whether there are devices for one more run of a sweep, whatever else it needs of their host.
func (d *decision) hasDevices(s domain.Sweep, key string) bool {
	s.Resources, s.Container, s.Admission.FreeMemory = domain.ResourceRequirements{}, nil, false
	next := d.admission.Next
	in, _ := d.input(s, []string{key})
	d.admission.Next = next
	in.Room = 0
	placed, _ := placement.Fill(in, false)
	return len(placed) > 0
}

// keeps reports whether a sweep without room prevents another one from starting runs, as they would take what it waits
// for.
func (d *decision) keeps(earlier shortage, s domain.Sweep) bool {
	uses, waitsFor := HostsFor(s, d.cluster), earlier.hosts
	if earlier.devices != nil {
		uses, waitsFor = devicesFor(s, d.cluster), earlier.devices
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(uses)), func(name string) bool { return waitsFor[name] })
}

// HostsFor returns the names of the hosts that a sweep's runs may use.
func HostsFor(s domain.Sweep, c Cluster) map[string]bool {
	hosts := map[string]bool{}
	for name, host := range c.Hosts {
		if placement.Allows(s.Placement, name, host) && (s.GPUs == nil || len(c.Pools[s.GPUs.Pool].Devices[name]) > 0) {
			hosts[name] = true
		}
	}
	return hosts
}

// devicesFor returns the UUIDs of the devices that a sweep's runs may use.
func devicesFor(s domain.Sweep, c Cluster) map[string]bool {
	devices := map[string]bool{}
	for host := range HostsFor(s, c) {
		if s.GPUs == nil {
			break
		}
		for _, device := range c.Pools[s.GPUs.Pool].Devices[host] {
			devices[device.UUID] = true
		}
	}
	return devices
}
