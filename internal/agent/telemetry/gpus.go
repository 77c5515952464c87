package telemetry

import (
	"cmp"
	"context"
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

// GPUSource reads the GPUs of this host, in the order of their indexes.
type GPUSource func(ctx context.Context) ([]domain.GPU, error)

// sampleGPUs returns the GPUs of this host, with what the processes that use them belong to.
func sampleGPUs(ctx context.Context, source GPUSource) domain.HostGPUs {
	gpus, err := source(ctx)
	sample := domain.HostGPUs{GPUs: gpus, SampledAt: time.Now()}
	if err != nil && hasNVIDIA() {
		sample.Unknown = err.Error()
	}
	owners := instancesByPID()
	for i := range gpus {
		for j := range gpus[i].Processes {
			p := &gpus[i].Processes[j]
			if p.Instance = owners[p.PID]; p.Instance == "" {
				p.Instance = containerOf(p.PID)
			}
		}
	}
	return sample
}

// instancesByPID returns the marks of instances by the IDs of their processes. Where the process table can't be read there are none.
func instancesByPID() map[int]string {
	owners := map[int]string{}
	instances, _ := proctree.Scan()
	for mark, processes := range instances {
		for _, p := range processes {
			owners[p.PID] = mark
		}
	}
	return owners
}

// ProcVariable names the folder where the host's process table is, for an agent in a container, which has its own at /proc, and
// sysVariable that of its devices.
const (
	ProcVariable = "HOST_PROC"
	sysVariable  = "HOST_SYS"
)

// HostProc returns the folder of the host's process table.
func HostProc() string { return cmp.Or(os.Getenv(ProcVariable), "/proc") }

// nvidiaVendor is NVIDIA's number among the makers of PCI devices, and displays begin the classes of those that compute or display.
const (
	nvidiaVendor = "0x10de"
	displays     = "0x03"
)

// hasNVIDIA tells whether this host has a GPU of NVIDIA's, or their driver: where it has neither, that no GPUs can be read means that
// there are none.
func hasNVIDIA() bool {
	if _, err := os.Stat(filepath.Join(HostProc(), "driver/nvidia")); err == nil {
		return true
	}
	vendors, _ := filepath.Glob(filepath.Join(cmp.Or(os.Getenv(sysVariable), "/sys"), "bus/pci/devices/*/vendor"))
	return slices.ContainsFunc(vendors, func(file string) bool {
		vendor, _ := os.ReadFile(file) //nolint:gosec // of the table of devices
		class, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "class"))
		return strings.TrimSpace(string(vendor)) == nvidiaVendor && strings.HasPrefix(string(class), displays)
	})
}

// containerID is how the control groups of containers are called, by Docker and by others.
var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// containerOf returns the ID of the container that a process of the host is in; "" where it is in none, or gone.
func containerOf(pid int) string {
	groups, err := os.ReadFile(filepath.Join(HostProc(), strconv.Itoa(pid), "cgroup")) //nolint:gosec // of the process table
	if err != nil {
		return ""
	}
	return containerIn(string(groups))
}

// containerIn returns the ID of the innermost container that a list of control groups names.
func containerIn(groups string) string {
	found := containerID.FindAllString(groups, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}
