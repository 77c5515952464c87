package domain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Sharing says how many members may use a device of a pool at a time.
type Sharing string

// The ways to share a device.
const (
	// Exclusive gives a device to one member.
	Exclusive Sharing = "exclusive"
	// Slots divides a device's memory into slots of equal size. A member takes one or more.
	Slots Sharing = "slots"
)

// Sharings lists the valid values.
var Sharings = []Sharing{Exclusive, Slots}

// ForeignProcess says what to do about a device that is used by a process that belongs to no member.
type ForeignProcess string

// The rules for devices in use by others.
const (
	ForeignIgnore ForeignProcess = "ignore"
	// ForeignWarn gives the device to a member with a warning; ForeignAvoid does not while it is busy.
	ForeignWarn  ForeignProcess = "warn"
	ForeignAvoid ForeignProcess = "avoid"
)

// ForeignProcesses lists the valid values.
var ForeignProcesses = []ForeignProcess{ForeignIgnore, ForeignWarn, ForeignAvoid}

// DefaultReservePercent is the percentage of a shared device's memory that is left to the driver and to CUDA itself.
const DefaultReservePercent = 3.0

// GPUPool is the specification of a GPU pool: the devices that members of a cluster may use, and how they are shared.
type GPUPool struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Devices are the UUIDs of exact devices by host; nil if Select chooses them.
	Devices map[string][]string `json:"devices,omitzero"`
	Select  *DeviceSelector     `json:"select,omitempty"`
	// Sharing defaults to Exclusive.
	Sharing Sharing `json:"sharing,omitempty"`
	// MemoryMiBPerSlot is the size of a slot. ReservePercent is the percentage of each device's memory that is not
	// divided into slots; nil means DefaultReservePercent.
	MemoryMiBPerSlot int64    `json:"memory_mib_per_slot,omitempty"`
	ReservePercent   *float64 `json:"reserve_percent,omitempty"`
	// Strategy is how members are distributed over the devices of a host: Pack, or Spread, which is the default.
	Strategy Strategy `json:"strategy,omitempty"`
	// OnForeignProcess defaults to ForeignAvoid.
	OnForeignProcess ForeignProcess `json:"on_foreign_process,omitempty"`
}

// DeviceSelector chooses devices by their properties; omitted ones match any.
type DeviceSelector struct {
	// Model is a pattern for the whole name, in which * stands for any characters and ? for one: "Tesla V100*".
	Model string `json:"model,omitempty"`
	// MemoryMiB is the minimum memory of a device.
	MemoryMiB int64 `json:"memory_mib,omitempty"`
	// Hosts are the only allowed hosts. Labels must all be on the host with the same values.
	Hosts  []string          `json:"hosts,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// MaxPerHost limits the number of devices of each host; 0 means no limit.
	MaxPerHost int `json:"max_per_host,omitempty"`
}

// GPUPoolDocument is what is stored with the cluster about a pool: the specification, and the devices found for it.
type GPUPoolDocument struct {
	Header
	Spec GPUPool `json:"spec"`
	// Devices are the pool's devices by host, ordered by index.
	Devices map[string][]Device `json:"devices"`
	// Trouble says why devices can't be used, by UUID, such as "fallen off the bus (XID 79)", as of the last scan.
	Trouble map[string]string `json:"trouble,omitempty"`
	// Condemned are the devices that need a reset before they can be used, by UUID. It is stored because agents forget
	// it when they restart.
	Condemned map[string]Condemnation `json:"condemned,omitempty"`
}

// Kind returns [GPUPoolKind].
func (*GPUPoolDocument) Kind() Kind { return GPUPoolKind }

// Key returns the pool's name.
func (d *GPUPoolDocument) Key() string { return d.Spec.Name }

// GPURequest is what one member of a role asks of a pool.
type GPURequest struct {
	Pool string `json:"pool"`
	// Count is the number of devices; nil means 1.
	Count *int `json:"count,omitempty"`
	// MemoryMiB is the memory needed on each device of a pool with slots. It takes as many slots as hold it; 0 means
	// one slot.
	MemoryMiB int64 `json:"memory_mib,omitempty"`
}

// Devices returns the requested number of devices.
func (r GPURequest) Devices() int {
	if r.Count == nil {
		return 1
	}
	return *r.Count
}

// SharingRule returns Sharing with the default filled in.
func (p GPUPool) SharingRule() Sharing { return cmp.Or(p.Sharing, Exclusive) }

// ForeignRule returns OnForeignProcess with the default filled in.
func (p GPUPool) ForeignRule() ForeignProcess { return cmp.Or(p.OnForeignProcess, ForeignAvoid) }

// Reserve returns the fraction of a device's memory that is not divided into slots, from 0 to below 1.
func (p GPUPool) Reserve() float64 {
	if p.ReservePercent != nil {
		return *p.ReservePercent / 100
	}
	return DefaultReservePercent / 100
}

// SlotsOf returns the number of slots of a device: 1 if it is exclusive, else as many as fit into its memory less the
// reserve. An A40 with 46,068 MiB has 37 slots of 1,199 MiB with a reserve of 3 %.
func (p GPUPool) SlotsOf(d Device) int {
	if p.SharingRule() == Exclusive {
		return 1
	}
	if p.MemoryMiBPerSlot <= 0 {
		return 0
	}
	const tolerance = 1e-6 // absorbs the rounding of the fraction: 93 % of 40,000 MiB are 37,200
	return int(math.Floor(float64(d.MemoryMiB)*(1-p.Reserve())+tolerance)) / int(p.MemoryMiBPerSlot)
}

// SlotsFor returns how many slots a request takes on each of its devices.
func (p GPUPool) SlotsFor(r GPURequest) int {
	if p.SharingRule() == Exclusive || r.MemoryMiB <= 0 || p.MemoryMiBPerSlot <= 0 {
		return 1
	}
	return int((r.MemoryMiB + p.MemoryMiBPerSlot - 1) / p.MemoryMiBPerSlot)
}

// Slots returns the number of slots of all devices. An exclusive device counts as one.
func (d GPUPoolDocument) Slots() int {
	slots := 0
	for _, devices := range d.Devices {
		for _, device := range devices {
			slots += d.Spec.SlotsOf(device)
		}
	}
	return slots
}

// Has reports whether a device is in the pool.
func (d GPUPoolDocument) Has(uuid string) bool {
	for _, devices := range d.Devices {
		if slices.ContainsFunc(devices, func(device Device) bool { return device.UUID == uuid }) {
			return true
		}
	}
	return false
}

// UUIDs returns the UUIDs of the pool's devices by host.
func (d GPUPoolDocument) UUIDs() map[string][]string {
	uuids := make(map[string][]string, len(d.Devices))
	for host, devices := range d.Devices {
		for _, device := range devices {
			uuids[host] = append(uuids[host], device.UUID)
		}
	}
	return uuids
}

// Unhealthy returns the host and the trouble of each device that can't be used, by UUID.
func (d GPUPoolDocument) Unhealthy() map[string]string {
	unhealthy := map[string]string{}
	for _, host := range slices.Sorted(maps.Keys(d.Devices)) {
		for _, device := range d.Devices[host] {
			if why := d.Trouble[device.UUID]; why != "" {
				unhealthy[device.UUID] = "host " + host + ": " + why
			}
		}
	}
	return unhealthy
}

// Matches reports whether the selector chooses a device of a host.
func (s DeviceSelector) Matches(host string, labels map[string]string, d Device) bool {
	return len(s.Mismatches(host, labels, d)) == 0
}

// Mismatches returns all reasons why the selector does not choose a device of a host.
func (s DeviceSelector) Mismatches(host string, labels map[string]string, d Device) []string {
	mismatches := s.hostMismatches(host, labels)
	if s.Model != "" {
		if matched, err := path.Match(s.pattern(), strings.ReplaceAll(d.Model, "/", "\x00")); err != nil || !matched {
			mismatches = append(mismatches, fmt.Sprintf("its model does not match %q", s.Model))
		}
	}
	if d.MemoryMiB < s.MemoryMiB {
		mismatches = append(mismatches, fmt.Sprintf("it has less than %d MiB", s.MemoryMiB))
	}
	return mismatches
}

// MatchesHost reports whether the selector allows devices of a host at all.
func (s DeviceSelector) MatchesHost(host string, labels map[string]string) bool {
	return len(s.hostMismatches(host, labels)) == 0
}

func (s DeviceSelector) hostMismatches(host string, labels map[string]string) (mismatches []string) {
	if len(s.Hosts) > 0 && !slices.Contains(s.Hosts, host) {
		mismatches = append(mismatches, fmt.Sprintf("%q is not in select.hosts", host))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if has, found := labels[key]; !found || has != s.Labels[key] {
			mismatches = append(mismatches, fmt.Sprintf("the host lacks the label %s = %q", key, s.Labels[key]))
		}
	}
	return mismatches
}

// pattern returns the model's pattern for path.Match. Slashes in names of GPUs are replaced, as path.Match treats them
// specially.
func (s DeviceSelector) pattern() string { return strings.ReplaceAll(s.Model, "/", "\x00") }

// HostNames returns the names of the hosts with listed devices, sorted.
func (p GPUPool) HostNames() []string { return slices.Sorted(maps.Keys(p.Devices)) }

// Equal reports whether two specifications are stored as the same document.
func (p GPUPool) Equal(other GPUPool) bool { return reflect.DeepEqual(p, other) }

// Validate returns what is wrong with the specification, regardless of which GPUs exist.
func (p GPUPool) Validate() Problems {
	var ps Problems
	CheckName(&ps, Path{"name"}, "GPU pool", p.Name)
	switch {
	case p.Devices == nil && p.Select == nil:
		ps.Add(Path{"devices"}, "No devices", "a GPU pool needs devices: name them by host, such as { gpu1 = "+
			"[\"GPU-4fa6a2a8-…\"] }, or choose them by select; data source trainyard_gpus lists the available ones")
		ps.DecidedBy([]Path{{"devices"}, {"select"}})
	case p.Devices != nil && p.Select != nil:
		ps.Add(Path{"select"}, "Conflicting devices and select", "devices and select are mutually exclusive")
	}
	p.validateDevices(&ps)
	if p.Select != nil {
		p.Select.validate(&ps)
	}
	p.validateSharing(&ps)
	if p.Strategy != "" && p.Strategy != Spread && p.Strategy != Pack {
		ps.Add(Path{"strategy"}, "Unknown strategy", "unknown strategy %q; use one of %q", p.Strategy,
			[]Strategy{Spread, Pack})
	}
	if p.OnForeignProcess != "" && !slices.Contains(ForeignProcesses, p.OnForeignProcess) {
		ps.Add(Path{"on_foreign_process"}, "Unknown rule", "unknown rule %q; use one of %q", p.OnForeignProcess,
			ForeignProcesses)
	}
	return ps
}

func (p GPUPool) validateDevices(ps *Problems) {
	at := map[string]Path{}
	if p.Devices != nil && len(p.Devices) == 0 {
		ps.Add(Path{"devices"}, "No devices",
			"devices is empty; list at least one device, such as { gpu1 = [\"GPU-4fa6a2a8-…\"] }")
	}
	for _, host := range p.HostNames() {
		here := Path{"devices", Key(host)}
		if len(p.Devices[host]) == 0 {
			ps.Add(here, "No devices", "host %q has no devices listed; list at least one, or leave the host out", host)
		}
		for i, uuid := range p.Devices[host] {
			CheckUUID(ps, here.At(i), uuid)
			if first, twice := at[uuid]; twice {
				ps.Add(here.At(i), "Duplicate device", "%q is already listed at %s", uuid, first)
				continue
			}
			at[uuid] = here.At(i)
		}
	}
}

func (s DeviceSelector) validate(ps *Problems) {
	at := Path{"select"}
	if _, err := path.Match(s.pattern(), ""); err != nil {
		ps.Add(at.At("model"), "Invalid pattern",
			"%q is not a valid pattern: * matches any characters, ? one, and [a-c] one of a set; \\ escapes them",
			s.Model)
	}
	if s.MemoryMiB < 0 {
		ps.Add(at.At("memory_mib"), "Invalid memory", "must be 0 or more, got %d", s.MemoryMiB)
	}
	if s.MaxPerHost < 0 {
		ps.Add(at.At("max_per_host"), "Invalid number", "must be 1 or more, got %d", s.MaxPerHost)
	}
}

func (p GPUPool) validateSharing(ps *Problems) {
	switch p.SharingRule() {
	case Exclusive:
		if p.MemoryMiBPerSlot != 0 {
			ps.Add(Path{"memory_mib_per_slot"}, "No slots",
				"the pool's devices are exclusive, and have no slots; set sharing = %q to share them", Slots)
			ps.DecidedBy([]Path{{"memory_mib_per_slot"}, {"sharing"}})
		}
		if p.ReservePercent != nil {
			ps.Add(Path{"reserve_percent"}, "No slots",
				"the pool's devices are exclusive, and nothing is reserved on them; set sharing = %q to share them",
				Slots)
			ps.DecidedBy([]Path{{"reserve_percent"}, {"sharing"}})
		}
	case Slots:
		if p.MemoryMiBPerSlot <= 0 {
			ps.Add(Path{"memory_mib_per_slot"}, "Missing slot size",
				"must be 1 or more, the MiB of memory that a member uses at its peak, got %d", p.MemoryMiBPerSlot)
		}
		if r := p.ReservePercent; r != nil && (*r < 0 || *r >= 100 || math.IsNaN(*r)) {
			ps.Add(Path{"reserve_percent"}, "Invalid reserve", "must be at least 0 and below 100, got %s",
				strconv.FormatFloat(*r, 'g', -1, 64))
		}
	default:
		ps.Add(Path{"sharing"}, "Unknown sharing", "unknown sharing %q; use one of %q", p.Sharing, Sharings)
	}
}
