package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// host is a host with its GPUs.
type host struct {
	Name, Role, Labels string
	// Reason says why the host's usage is unknown, GPUsReason why its GPUs' usage is.
	Reason, GPUsReason string
	CPUs, Memory, Disk meter
	Load, Network      string
	GPUs               []gpu
}

// gpu is a GPU: its allocation and its usage.
type gpu struct {
	Index, Model, UUID string
	// Pools are the GPU pools that contain it, Owners the members and runs that it is allocated to.
	Pools, Owners []string
	// Busy is its utilisation over the last second, Mean over the last ten minutes.
	Busy, Mean string
	Memory     meter
	Details    string // temperature and power
	Trouble    string
	Tone       tone
}

// host returns a host by name. owners maps GPU UUIDs to their owners.
func (r reading) host(name string, owners map[string][]string) host {
	spec, u := r.Cluster.Hosts[name], r.Usage.Hosts[name]
	h := host{
		Name: name, Role: string(spec.Role), Labels: labels(spec.Labels), Reason: u.Reason,
		CPUs: meterOf(u.CPUs.Last, u.TotalCPUs, ofTotal,
			func(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }),
		Memory: memoryMeter(u.MemoryMiB.Last, u.TotalMemoryMiB),
		Disk:   memoryMeter(u.DiskMiB.Last, u.TotalDiskMiB),
		Load:   number("%.1f", u.Load.Last),
	}
	if u.ReceivedBps.Last != nil && u.SentBps.Last != nil {
		h.Network = fmt.Sprintf("%s received, %s sent", rate(*u.ReceivedBps.Last), rate(*u.SentBps.Last))
	}
	if why := cmp.Or(u.GPUsReason, r.gpus[name].Unknown); why != u.Reason {
		h.GPUsReason = why
	}
	for _, device := range r.gpusOf(name) {
		h.GPUs = append(h.GPUs, r.gpu(device, owners[device.UUID]))
	}
	return h
}

// gpusOf returns the GPUs found on a host, followed by those that a pool lists there but that were not found.
func (r reading) gpusOf(host string) []domain.GPU {
	found := slices.Clone(r.gpus[host].GPUs)
	known := map[string]bool{}
	for _, device := range found {
		known[device.UUID] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.pools)) {
		for _, device := range r.pools[name].Devices[host] {
			if !known[device.UUID] {
				known[device.UUID] = true
				found = append(found, domain.GPU{Device: device, Index: -1})
			}
		}
	}
	return found
}

func (r reading) gpu(device domain.GPU, owners []string) gpu {
	u := r.Usage.GPUs[device.UUID]
	g := gpu{
		Index: strconv.Itoa(device.Index), Model: device.Model, UUID: device.UUID, Owners: owners,
		Busy: number("%.0f %%", u.Utilisation.Last), Mean: number("%.0f %%", u.Utilisation.Mean),
	}
	trouble := u.Reason
	if device.Index < 0 {
		g.Index, trouble = "?", "not found on its host"
	}
	for _, name := range slices.Sorted(maps.Keys(r.pools)) {
		pool := r.pools[name]
		for _, devices := range pool.Devices {
			if slices.ContainsFunc(devices, func(d domain.Device) bool { return d.UUID == device.UUID }) {
				g.Pools = append(g.Pools, name)
				trouble = cmp.Or(pool.Trouble[device.UUID], trouble)
			}
		}
	}
	g.Trouble = trouble
	g.Memory = memoryMeter(u.MemoryMiB.Last, cmp.Or(u.TotalMemoryMiB, device.MemoryMiB))
	var details []string
	if u.TemperatureC.Last != nil {
		details = append(details, fmt.Sprintf("%.0f °C", *u.TemperatureC.Last))
	}
	if u.PowerW.Last != nil {
		details = append(details, fmt.Sprintf("%.0f W", *u.PowerW.Last))
	}
	g.Details = strings.Join(details, ", ")
	switch {
	case g.Trouble != "":
		g.Tone = bad
	case len(owners) > 0:
		g.Tone = good
	default:
		g.Tone = faint
	}
	return g
}

// owners maps GPU UUIDs to the members of groups, and the active runs of sweeps, that they are allocated to.
func (r reading) owners() map[string][]string {
	owners := map[string][]string{}
	for group, document := range r.Groups {
		if r.progress[group].Phase.Ended() {
			continue
		}
		for member, at := range document.Assignments {
			for _, uuid := range at.GPUs.UUIDs() {
				owners[uuid] = append(owners[uuid], member)
			}
		}
	}
	for name, s := range r.sweeps.Found {
		for key, run := range s.Runs {
			if run.Active() {
				for _, uuid := range run.Assignment.GPUs.UUIDs() {
					owners[uuid] = append(owners[uuid], name+"/"+key)
				}
			}
		}
	}
	for _, names := range owners {
		slices.Sort(names)
	}
	return owners
}

func labels(of map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, key+"="+of[key])
	}
	return strings.Join(all, ", ")
}

// rate formats bytes per second.
func rate(bps float64) string {
	switch {
	case bps >= 1e9:
		return fmt.Sprintf("%.1f GB/s", bps/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.1f MB/s", bps/1e6)
	}
	return fmt.Sprintf("%.0f kB/s", bps/1e3)
}
