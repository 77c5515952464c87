//go:build linux

package telemetry

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// identity distinguishes processes, even with reused IDs.
type identity struct {
	pid       int
	startTime uint64
}

func identify(p proctree.Process) identity {
	return identity{pid: p.PID, startTime: p.StartTime}
}

// cpuBetween returns the processor time that an instance used between two readings of its processes, the first of them
// at a time since the boot. It is never negative. Unknown times are left out: that of an ended process, unless another
// one of the instance waited for it, and the earlier time of one that the first reading missed.
func cpuBetween(first, second []proctree.Process, firstAt time.Duration) time.Duration {
	before := make(map[identity]proctree.Process, len(first))
	byPID := make(map[int]proctree.Process, len(first))
	for _, p := range first {
		before[identify(p)], byPID[p.PID] = p, p
	}
	alive := make(map[identity]bool, len(second))
	for _, p := range second {
		alive[identify(p)] = true
	}

	// heir returns the nearest ancestor of an ended process that still runs.
	heir := func(p proctree.Process) (identity, bool) {
		for range first {
			parent, found := byPID[p.Parent]
			if !found {
				break
			}
			if alive[identify(parent)] {
				return identify(parent), true
			}
			p = parent
		}
		return identity{}, false
	}

	// inherited is the time that a process took over from ended ones, and that was used before the first reading.
	inherited := map[identity]time.Duration{}
	for _, p := range first {
		if alive[identify(p)] {
			continue
		}
		if id, found := heir(p); found {
			inherited[id] += p.CPU + p.WaitedCPU
		}
	}

	var used time.Duration
	for _, p := range second {
		id := identify(p)
		start, seen := before[id]
		if !seen && time.Duration(p.StartTime)*proctree.ClockTick < firstAt.Truncate(proctree.ClockTick) {
			continue
		}
		used += max(p.CPU-start.CPU, 0) + max(p.WaitedCPU-start.WaitedCPU-inherited[id], 0)
	}
	return used
}
