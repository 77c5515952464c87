package domain

import (
	"strings"
	"time"
)

// Device is what stays the same of a GPU: who it is, and what it has.
type Device struct {
	// UUID is the GPU's own, such as "GPU-4fa6a2a8-…", the same at any place and after any restart.
	UUID  string `json:"uuid"`
	Model string `json:"model"`
	// MemoryMiB is all of its memory.
	MemoryMiB int64 `json:"memory_mib"`
	// NUMANode is the memory node of its host that it is nearest to; nil where the host does not tell.
	NUMANode *int `json:"numa_node,omitempty"`
	// Links are the UUIDs of the GPUs that it reaches by NVLink, sorted.
	Links []string `json:"links,omitempty"`
}

// GPU is a device as it was found on its host. What is not known is nil.
type GPU struct {
	Device
	// Index is its number on the host, which may be another after a restart of the host.
	Index    int    `json:"index"`
	PCIBusID string `json:"pci_bus_id,omitempty"`

	MemoryUsedMiB *int64 `json:"memory_used_mib,omitempty"`
	MemoryFreeMiB *int64 `json:"memory_free_mib,omitempty"`
	// Utilisation is how much of the last moment it was working, and MemoryUtilisation how much of that its memory was
	// read or written, in percent.
	Utilisation       *float64 `json:"utilisation,omitempty"`
	MemoryUtilisation *float64 `json:"memory_utilisation,omitempty"`
	TemperatureC      *int64   `json:"temperature_c,omitempty"`
	PowerW            *float64 `json:"power_w,omitempty"`
	PowerLimitW       *float64 `json:"power_limit_w,omitempty"`
	// ECCErrors are the errors of its memory since the driver was loaded that could not be corrected; nil where ECC is
	// off.
	ECCErrors *int64 `json:"ecc_errors,omitempty"`
	// XID is the number of the last error that the driver reported of it, since somebody listens; nil where there was
	// none.
	XID   *int       `json:"xid,omitempty"`
	XIDAt *time.Time `json:"xid_at,omitempty"`
	// Condemned is the error for which it has to be reset, as far as those know who listen now; nil where there was
	// none.
	Condemned *Condemnation `json:"condemned,omitempty"`
	// RecoveryNeeded is whether the driver asks for a reset of it, or for more; nil where it does not tell.
	RecoveryNeeded *bool `json:"recovery_needed,omitempty"`
	// GoneAt is when it, or its driver, was last found to be gone; zero where neither was since somebody looks.
	GoneAt time.Time `json:"gone_at,omitzero"`
	// MIG reports whether it is divided by MIG.
	MIG *bool `json:"mig,omitempty"`
	// Processes use it. They are nil where nobody can tell, and empty where there are none.
	Processes []GPUProcess `json:"processes"`
	// Trouble says in words why it can't be used, such as "fallen off the bus (XID 79)"; empty where it can.
	Trouble string `json:"trouble,omitempty"`
	// Unknown says in words what could not be read of it, and why; empty where all could.
	Unknown string `json:"unknown,omitempty"`
}

// UnseenUseMiB is how much memory may be in use of a GPU, in MiB, without anybody to be seen who uses it: the driver
// keeps some.
const UnseenUseMiB = 256

// GPUProcess is a process that uses a GPU.
type GPUProcess struct {
	PID       int    `json:"pid"`
	MemoryMiB *int64 `json:"memory_mib,omitempty"`
	// Command is the name of its program; empty where it is not known.
	Command string `json:"command,omitempty"`
	// Instance is how the host's agent knows what it belongs to: the mark of a member's instance, or the ID of a
	// container.
	Instance string `json:"instance,omitempty"`
	// Member is the member of the cluster that it belongs to; empty where it is none's.
	Member string `json:"member,omitempty"`
}

// HostGPUs are the GPUs of a host as they were found.
type HostGPUs struct {
	// GPUs are in the order of their indexes.
	GPUs      []GPU     `json:"gpus"`
	SampledAt time.Time `json:"sampled_at"`
	// Boot is the ID of the host's start, another one after each restart; empty where the host does not tell.
	Boot string `json:"boot,omitempty"`
	// Unknown says why it is not known which there are; empty where it is.
	Unknown string `json:"unknown,omitempty"`
	// UnknownSince is since when the agent of the host itself has not known it, at each of its looks; zero where it
	// knows, or did not answer.
	UnknownSince time.Time `json:"unknown_since,omitzero"`
}

// DeviceSet is a list of UUIDs joined by commas, as the variable NVIDIA_VISIBLE_DEVICES has them.
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

// CheckUUID adds a problem where a text can't be the UUID of a GPU.
func CheckUUID(ps *Problems, at Path, uuid string) {
	rest, isGPU := strings.CutPrefix(uuid, "GPU-")
	plain := rest != "" && strings.Trim(rest, "0123456789abcdefABCDEF-") == ""
	switch {
	case strings.HasPrefix(uuid, "MIG-"):
		ps.Add(at, "MIG device", "%q is a part of a GPU made by MIG; a pool has whole GPUs, of which members take slots (sharing = %q)", uuid, Slots)
	case !isGPU || !plain:
		ps.Add(at, "Invalid UUID", "%q is not the UUID of a GPU, such as \"GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91\": nvidia-smi -L and data source trainyard_gpus list them. An index is not enough: it changes", uuid)
	}
}
