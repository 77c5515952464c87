// Package telemetry measures what a host has and what is used of it, by itself and by the instances on it.
package telemetry

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// Host is what is used of a host, by all that runs on it.
type Host struct {
	// CPUs are the processors that were busy, from 0 to TotalCPUs, which are all that are online.
	CPUs      float64
	TotalCPUs int
	// MemoryMiB is the memory that is not available to new processes without swapping, out of TotalMemoryMiB.
	MemoryMiB      float64
	TotalMemoryMiB int64
	SampledAt      time.Time
}

// Instance is what the processes of an instance use.
type Instance struct {
	// CPUs are the processors that they kept busy.
	CPUs float64
	// MemoryMiB is their resident memory; what several of them share counts for each.
	MemoryMiB float64
	SampledAt time.Time
}

// Sample returns the use of this host and of those of the instances that have processes. CPUs are measured between
// two readings that are interval apart, memory at the second. It fails when ctx is done before that.
func Sample(ctx context.Context, interval time.Duration, instances []string) (Host, map[string]Instance, error) {
	if interval <= 0 {
		return Host{}, nil, fmt.Errorf("an interval of %s can't be measured over: it must be positive", interval)
	}
	first, err := read()
	if err != nil {
		return Host{}, nil, err
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return Host{}, nil, context.Cause(ctx)
	}
	second, err := read()
	if err != nil {
		return Host{}, nil, err
	}
	memory, err := readMemory()
	if err != nil {
		return Host{}, nil, err
	}

	elapsed := second.sinceBoot - first.sinceBoot
	host := Host{
		CPUs:           processors(second.busy-first.busy, elapsed, second.cpus),
		TotalCPUs:      second.cpus,
		MemoryMiB:      mebibytes(memory.used()),
		TotalMemoryMiB: int64(memory.total >> 20),
		SampledAt:      second.at,
	}
	use := map[string]Instance{}
	for _, id := range instances {
		processes := second.instances[id]
		if len(processes) == 0 {
			continue
		}
		var resident int64
		for _, p := range processes {
			resident += p.ResidentBytes
		}
		use[id] = Instance{
			CPUs:      processors(cpuBetween(first.instances[id], processes, first.sinceBoot), elapsed, second.cpus),
			MemoryMiB: mebibytes(uint64(resident)),
			SampledAt: second.at,
		}
	}
	return host, use, nil
}

// Capacity returns the processors that this process may run on and the memory of the host.
func Capacity() (cpus float64, memoryMiB int64, err error) {
	memory, err := readMemory()
	if err != nil {
		return 0, 0, err
	}
	return float64(runtime.NumCPU()), int64(memory.total >> 20), nil
}

// reading is the state of the host's counters at one moment.
type reading struct {
	at        time.Time
	sinceBoot time.Duration
	cpus      int
	busy      time.Duration
	instances map[string][]proctree.Process
}

func read() (reading, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return reading{}, fmt.Errorf("reading the host's counters: %w", err)
	}
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return reading{}, fmt.Errorf("reading the time since the boot: %w", err)
	}
	r := reading{at: time.Now(), sinceBoot: time.Duration(boot.Nano())}
	stat, err := fs.Stat()
	if err != nil {
		return reading{}, fmt.Errorf("reading the host's counters: %w", err)
	}
	r.cpus, r.busy = len(stat.CPU), busy(stat.CPUTotal)
	r.instances, err = proctree.Scan()
	return r, err
}

// busy returns the time that processors spent on this host's work. User and Nice hold that of guests.
func busy(s procfs.CPUStat) time.Duration {
	return time.Duration((s.User + s.Nice + s.System + s.IRQ + s.SoftIRQ) * float64(time.Second))
}

// memory is the host's memory in bytes.
type memory struct {
	total, available uint64
}

func (m memory) used() uint64 {
	return m.total - min(m.available, m.total)
}

func readMemory() (memory, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return memory{}, fmt.Errorf("reading the host's memory: %w", err)
	}
	info, err := fs.Meminfo()
	if err != nil {
		return memory{}, fmt.Errorf("reading the host's memory: %w", err)
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return memory{}, fmt.Errorf("reading the host's memory: /proc/meminfo lacks MemTotal or MemAvailable; it needs Linux 3.14")
	}
	return memory{total: *info.MemTotalBytes, available: *info.MemAvailableBytes}, nil
}

// processors returns how many processors a processor time over a stretch of time is. The counters' ticks of 10 ms
// may add up to a little more than there are, and the host's may run back a little.
func processors(used, elapsed time.Duration, limit int) float64 {
	return min(max(used.Seconds()/elapsed.Seconds(), 0), float64(limit))
}

func mebibytes(bytes uint64) float64 {
	return float64(bytes) / (1 << 20)
}
