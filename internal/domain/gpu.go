package domain

import (
	"strings"
	"time"
)

// Device is what stays the same about a GPU: its identity and its properties.
type Device struct {
	// UUID is the GPU's own, such as "GPU-4fa6a2a8-…". It stays the same in another slot or host, and across restarts.
	UUID  string `json:"uuid"`
	Model string `json:"model"`
	// MemoryMiB is its total memory.
	MemoryMiB int64 `json:"memory_mib"`
	// NUMANode is the nearest NUMA node of its host; nil if the host does not report it.
	NUMANode *int `json:"numa_node,omitempty"`
	// Links are the UUIDs of the GPUs that it reaches over NVLink, sorted.
	Links []string `json:"links,omitempty"`
}

// GPU is a device as found on its host. Unknown values are nil.
type GPU struct {
	Device
	// Index is its number on the host, which may change when the host restarts.
	Index    int    `json:"index"`
	PCIBusID string `json:"pci_bus_id,omitempty"`

	MemoryUsedMiB *int64 `json:"memory_used_mib,omitempty"`
	MemoryFreeMiB *int64 `json:"memory_free_mib,omitempty"`
	// Utilisation is the percentage of the last sample period in which it was working. MemoryUtilisation is the
	// percentage in which its memory was read or written.
	Utilisation       *float64 `json:"utilisation,omitempty"`
	MemoryUtilisation *float64 `json:"memory_utilisation,omitempty"`
	TemperatureC      *int64   `json:"temperature_c,omitempty"`
	PowerW            *float64 `json:"power_w,omitempty"`
	PowerLimitW       *float64 `json:"power_limit_w,omitempty"`
	// ECCErrors counts the uncorrectable memory errors since the driver was loaded; nil if ECC is off.
	ECCErrors *int64 `json:"ecc_errors,omitempty"`
	// XID is the number of the last error that the driver reported for it since the agent began to listen; nil if there
	// was none.
	XID   *int       `json:"xid,omitempty"`
	XIDAt *time.Time `json:"xid_at,omitempty"`
	// Condemned is the error for which it needs a reset, as far as the present listener knows; nil if there was none.
	Condemned *Condemnation `json:"condemned,omitempty"`
	// RecoveryNeeded is whether the driver asks for a reset or more; nil if the driver does not report it.
	RecoveryNeeded *bool `json:"recovery_needed,omitempty"`
	// GoneAt is when the GPU or its driver was last found missing; zero if neither has been since the agent began to
	// look.
	GoneAt time.Time `json:"gone_at,omitzero"`
	// MIG reports whether it is partitioned by MIG.
	MIG *bool `json:"mig,omitempty"`
	// Processes use it: nil if unknown, empty if there are none.
	Processes []GPUProcess `json:"processes"`
	// Trouble says why it can't be used, such as "fallen off the bus (XID 79)"; empty if it can.
	Trouble string `json:"trouble,omitempty"`
	// Unknown says what could not be read, and why; empty if everything could.
	Unknown string `json:"unknown,omitempty"`
}

// UnseenUseMiB is how much of a GPU's memory may be in use without a visible process, in MiB. The driver itself keeps
// some.
const UnseenUseMiB = 256

// GPUProcess is a process that uses a GPU.
type GPUProcess struct {
	PID       int    `json:"pid"`
	MemoryMiB *int64 `json:"memory_mib,omitempty"`
	// Command is the name of its program; empty if unknown.
	Command string `json:"command,omitempty"`
	// Instance is how the host's agent identifies what it belongs to: the mark of a member's instance, or the ID of a
	// container.
	Instance string `json:"instance,omitempty"`
	// Member is the member of the cluster that it belongs to; empty if it belongs to none.
	Member string `json:"member,omitempty"`
}

// HostGPUs are the GPUs found on a host.
type HostGPUs struct {
	// GPUs are ordered by index.
	GPUs      []GPU     `json:"gpus"`
	SampledAt time.Time `json:"sampled_at"`
	// Boot is the host's boot ID, which changes with each restart; empty if the host does not report one.
	Boot string `json:"boot,omitempty"`
	// Unknown says why the GPUs of the host are unknown; empty if they are known.
	Unknown string `json:"unknown,omitempty"`
	// UnknownSince is since when every scan by the host's own agent has failed; zero if the last one succeeded or the
	// agent did not answer.
	UnknownSince time.Time `json:"unknown_since,omitzero"`
}

// DeviceSet is a list of UUIDs joined by commas, as in NVIDIA_VISIBLE_DEVICES.
type DeviceSet string

// NewDeviceSet returns the set of these devices, in this order.
func NewDeviceSet(uuids ...string) DeviceSet { return DeviceSet(strings.Join(uuids, ",")) }

// UUIDs returns the devices of the set, in its order.
func (s DeviceSet) UUIDs() []string {
	if s == "" {
		return nil
	}
	return strings.Split(string(s), ",")
}

// CheckUUID adds a problem if a text can't be the UUID of a GPU.
func CheckUUID(ps *Problems, at Path, uuid string) {
	rest, isGPU := strings.CutPrefix(uuid, "GPU-")
	plain := rest != "" && strings.Trim(rest, "0123456789abcdefABCDEF-") == ""
	switch {
	case strings.HasPrefix(uuid, "MIG-"):
		ps.Add(at, "MIG device",
			"%q is a MIG device; a pool has whole GPUs, of which members can take slots (sharing = %q)", uuid, Slots)
	case !isGPU || !plain:
		ps.Add(at, "Invalid UUID", "%q is not a GPU UUID, such as \"GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91\": "+
			"nvidia-smi -L and data source trainyard_gpus list them. Indexes are not accepted, as they may change",
			uuid)
	}
}
