//go:build linux

package telemetry

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// Settings configure how a host is measured.
type Settings struct {
	// Proc is the folder of the host's process table, see [HostProc].
	Proc string
	// Disk is a folder on the file system whose space is measured.
	Disk string
	// History is the file in which a resident leaves its history to its successor; "" for none.
	History string
	// GPUs reads the GPUs; nil if there is no support for that.
	GPUs GPUSource
	// Units reads the traffic of instances that are units; nil if none is.
	Units UnitSource
}

// inContainer reports whether this process has another process table than its host: then instances are containers.
func (s Settings) inContainer() bool { return s.Proc != ownProc }

// InContainer reports whether this agent runs in a container with the host's process table mounted.
func InContainer() bool { return Settings{Proc: HostProc()}.inContainer() }

// Capacity returns the processors that this process may run on and the memory of the host.
func Capacity() (cpus float64, memoryMiB int64, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the host's memory: %w", err)
	}
	memory, err := readMemory(fs)
	if err != nil {
		return 0, 0, err
	}
	return float64(runtime.NumCPU()), int64(memory.total >> 20), nil
}

// reading is the state of the host's counters at one time.
type reading struct {
	at        time.Time
	sinceBoot time.Duration
	cpus      int
	busy      time.Duration
	memory    memory
	disk      memory
	load      float64
	// The bytes through all interfaces to other hosts, as the host's first process sees them; NaN if they can't be
	// read.
	counted
	instances map[string][]proctree.Process
	networks  map[string]network // of instances
	traffic   map[string]traffic // of instances
}

// read reads the counters. The instances are those of an earlier reading, in their current state, or all existing ones
// if that has none.
func (s Settings) read(earlier reading, inUnits unitLook) (reading, error) {
	fs, err := procfs.NewFS(s.Proc)
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
	if r.memory, err = readMemory(fs); err != nil {
		return reading{}, err
	}
	r.load = math.NaN()
	if load, err := fs.LoadAvg(); err == nil {
		r.load = load.Load1
	}
	r.disk = s.readDisk()
	r.counted, _ = countInterfaces(fs, 1, s.inner())
	if earlier.instances == nil {
		r.instances, err = s.census()
	} else {
		r.instances = proctree.Again(s.Proc, earlier.instances)
	}
	r.networks, r.traffic = s.readTraffic(fs, r.instances, earlier.networks, inUnits)
	return r, err
}

// census returns the processes of all instances.
func (s Settings) census() (map[string][]proctree.Process, error) {
	if s.inContainer() {
		return proctree.ScanBy(s.Proc, func(p proctree.Process) string { return containerOf(s.Proc, p.PID) })
	}
	return proctree.Scan()
}

// busy returns the time that processors spent on this host's work. User and Nice include that of guests.
func busy(s procfs.CPUStat) time.Duration {
	return time.Duration((s.User + s.Nice + s.System + s.IRQ + s.SoftIRQ) * float64(time.Second))
}

// memory is memory or space in bytes.
type memory struct {
	total, available uint64
}

func (m memory) used() uint64 {
	return m.total - min(m.available, m.total)
}

func readMemory(fs procfs.FS) (memory, error) {
	info, err := fs.Meminfo()
	if err != nil {
		return memory{}, fmt.Errorf("reading the host's memory: %w", err)
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return memory{}, fmt.Errorf(
			"reading the host's memory: /proc/meminfo lacks MemTotal or MemAvailable: Linux 3.14 or later is required",
		)
	}
	return memory{total: *info.MemTotalBytes, available: *info.MemAvailableBytes}, nil
}

// readDisk returns the space of the file system; 0 of 0 if it can't be read.
func (s Settings) readDisk() memory {
	var stat unix.Statfs_t
	if s.Disk == "" || unix.Statfs(s.Disk, &stat) != nil {
		return memory{}
	}
	size := uint64(stat.Bsize) //nolint:gosec // sizes are positive
	return memory{total: stat.Blocks * size, available: stat.Bavail * size}
}

// between returns what was used between two readings, at the time of the second.
func between(first, second reading) sample {
	elapsed := second.sinceBoot - first.sinceBoot
	s := sample{at: second.at, instances: make(map[string]use, len(second.instances))}
	s.host = [hostQuantities]float64{
		hostCPUs:     processors(second.busy-first.busy, elapsed, second.cpus),
		hostMemory:   mebibytes(second.memory.used()),
		hostLoad:     second.load,
		hostDisk:     mebibytes(second.disk.used()),
		hostReceived: rate(first.received, second.received, elapsed),
		hostSent:     rate(first.sent, second.sent, elapsed),
	}
	if second.disk.total == 0 {
		s.host[hostDisk] = math.NaN()
	}
	for id, processes := range second.instances {
		var resident int64
		for _, p := range processes {
			resident += p.ResidentBytes
		}
		used := use{
			cpus: math.NaN(), memory: mebibytes(uint64(max(resident, 0))), received: math.NaN(), sent: math.NaN(),
		}
		if before := first.instances[id]; len(before) > 0 {
			used.cpus = processors(cpuBetween(before, processes, first.sinceBoot), elapsed, second.cpus)
			used.received, used.sent = rates(first.traffic[id], second.traffic[id], elapsed)
		}
		s.instances[id] = used
	}
	return s
}

// processors converts processor time over a period to a number of processors. The counters' ticks of 10 ms may add up
// to slightly more than limit, and the host's may run backwards slightly.
func processors(used, elapsed time.Duration, limit int) float64 {
	return min(max(used.Seconds()/elapsed.Seconds(), 0), float64(limit))
}

func mebibytes(bytes uint64) float64 {
	return float64(bytes) / (1 << 20)
}

// ownProc is the process table of this program's own host or container.
const ownProc = "/proc"

// HostProc returns the folder of the host's process table.
func HostProc() string {
	if folder := os.Getenv(ProcVariable); folder != "" {
		return folder
	}
	return ownProc
}
