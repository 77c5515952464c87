//go:build linux

package telemetry

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// GPUSource reads the GPUs of this host, sorted by index.
type GPUSource func(ctx context.Context) ([]domain.GPU, error)

// sampleGPUs returns the GPUs of this host, with the owners of the processes that use them.
func (s Settings) sampleGPUs(ctx context.Context, owners *owners) domain.HostGPUs {
	gpus, err := s.GPUs(ctx)
	sample := domain.HostGPUs{GPUs: gpus, SampledAt: time.Now()}
	sample.Boot, _ = proctree.BootID(s.Proc) // otherwise a reboot of the host can't be detected
	if err != nil && hasNVIDIA(s.Proc) {
		sample.Unknown = err.Error()
	}
	listed := map[int]bool{}
	for i := range gpus {
		for j := range gpus[i].Processes {
			p := &gpus[i].Processes[j]
			p.Instance = owners.of(p.PID)
			listed[p.PID] = true
		}
		if s.inContainer() {
			hideUnseen(&gpus[i])
		}
	}
	// The IDs of ended processes are reused.
	maps.DeleteFunc(owners.known, func(pid int, _ string) bool { return !listed[pid] })
	return sample
}

// hideUnseen makes the processes of a GPU unknown if none are visible though its memory is in use: to an agent in a
// container, the driver may not show those of its host.
func hideUnseen(gpu *domain.GPU) {
	if gpu.Processes != nil && len(gpu.Processes) == 0 && gpu.MemoryUsedMiB != nil &&
		*gpu.MemoryUsedMiB > domain.UnseenUseMiB {
		gpu.Processes = nil
		gpu.Unknown = strings.TrimPrefix(gpu.Unknown+
			"; the driver doesn't show its processes to an agent in a container",
			"; ")
	}
}

// owners are the instances that processes on GPUs belong to, by process ID; "" for none. The process table is read only
// if there is a new process, and by one caller at a time.
type owners struct {
	settings Settings
	known    map[int]string
}

// of returns the instance of a process, or the container that it is in.
func (o *owners) of(pid int) string {
	id, known := o.known[pid]
	if known {
		return id
	}
	if o.known == nil {
		o.known = map[int]string{}
	}
	instances, err := o.settings.census()
	for id, processes := range instances {
		for _, p := range processes {
			o.known[p.PID] = id
		}
	}
	id = cmp.Or(o.known[pid], containerOf(o.settings.Proc, pid))
	if id != "" || err == nil { // otherwise it has no owner, this time
		o.known[pid] = id
	}
	return id
}

// nvidiaVendor is NVIDIA's PCI vendor ID, and displays the prefix of the PCI classes of GPUs.
const (
	nvidiaVendor = "0x10de"
	displays     = "0x03"
)

// hasNVIDIA reports whether this host has an NVIDIA GPU or NVIDIA's driver. Without either, a failed read of GPUs means
// that the host has none.
func hasNVIDIA(proc string) bool {
	if _, err := os.Stat(filepath.Join(proc, "driver/nvidia")); err == nil {
		return true
	}
	vendors, _ := filepath.Glob(filepath.Join(cmp.Or(os.Getenv(SysVariable), "/sys"), "bus/pci/devices/*/vendor"))
	return slices.ContainsFunc(vendors, func(file string) bool {
		vendor, _ := os.ReadFile(file) //nolint:gosec // of the table of devices
		class, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "class"))
		return strings.TrimSpace(string(vendor)) == nvidiaVendor && strings.HasPrefix(string(class), displays)
	})
}

// containerID is how the cgroups of containers are named, by Docker and others.
var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// containerOf returns the ID of the container that a process of the host is in; "" if it is in none, or gone.
func containerOf(proc string, pid int) string {
	groups, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup")) //nolint:gosec // of the process table
	if err != nil {
		return ""
	}
	return containerIn(string(groups))
}

// containerIn returns the ID of the innermost container in a list of cgroups.
func containerIn(groups string) string {
	found := containerID.FindAllString(groups, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}
