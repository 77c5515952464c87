package nvml

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// processes returns the processes that use a device, or nil if the driver does not report them.
func (l *look) processes(d device) []domain.GPUProcess {
	var lists [][]process
	for _, kind := range []struct {
		function string
		list     func() ([]process, error)
	}{
		{"nvmlDeviceGetComputeRunningProcesses", d.getComputeRunningProcesses},
		{"nvmlDeviceGetGraphicsRunningProcesses", d.getGraphicsRunningProcesses},
	} {
		list, err := try(l, kind.function, kind.list)
		if errors.Is(err, notSupported) {
			continue
		}
		if err != nil {
			l.note(kind.function, err)
			return nil // a partial list would look like a complete one
		}
		lists = append(lists, list)
	}
	if lists == nil {
		return nil
	}
	merged := merge(lists...)
	for i := range merged {
		merged[i].Command = command(l.reader.settings.Proc, merged[i].PID)
	}
	return merged
}

// merge merges lists of processes, sorted by ID. A process in several of them has its total memory in each.
func merge(lists ...[]process) []domain.GPUProcess {
	byPID := map[int]domain.GPUProcess{}
	for _, p := range slices.Concat(lists...) {
		known := byPID[p.pid]
		known.PID = p.pid
		if p.memory != memoryNotAvailable {
			mib := int64(p.memory >> 20)
			if known.MemoryMiB != nil {
				mib = max(mib, *known.MemoryMiB)
			}
			known.MemoryMiB = &mib
		}
		byPID[p.pid] = known
	}
	merged := make([]domain.GPUProcess, 0, len(byPID))
	for _, pid := range slices.Sorted(maps.Keys(byPID)) {
		merged = append(merged, byPID[pid])
	}
	return merged
}

// command returns the name of a process's program, or "" if the process is gone or hidden.
func command(proc string, pid int) string {
	name, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(string(name), "\n"), "?")
}
