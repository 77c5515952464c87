//go:build linux

package limits

import (
	"fmt"
	"math"
	"strconv"
)

const (
	// periodMicros is the period over which the kernel enforces a CPU limit, in microseconds.
	periodMicros = 100_000
	// minCPUs is the kernel's minimum: 1 ms per period.
	minCPUs = 0.01
	maxCPUs = 100_000
)

// setting is a file of a group and the value for it.
type setting struct {
	controller string
	file       string
	value      string
	// optional is true for a file that is missing in kernels without swap accounting.
	optional bool
}

// settings returns the settings for limits, in the order to write them; 0 means no limit.
func settings(unified bool, cpus float64, memoryMiB int64) []setting {
	none := "-1"
	if unified {
		none = "max"
	}
	quota, bytes, swap := none, none, none
	if cpus > 0 {
		quota = strconv.FormatInt(int64(math.Round(cpus*periodMicros)), 10)
	}
	if memoryMiB > 0 {
		bytes, swap = strconv.FormatInt(memoryMiB<<20, 10), "0"
	}
	if unified {
		return []setting{
			{controller: cpu, file: "cpu.max", value: fmt.Sprintf("%s %d", quota, periodMicros)},
			{controller: memory, file: "memory.swap.max", value: swap, optional: true},
			{controller: memory, file: "memory.max", value: bytes},
		}
	}
	return []setting{
		{controller: cpu, file: "cpu.cfs_period_us", value: strconv.Itoa(periodMicros)},
		{controller: cpu, file: "cpu.cfs_quota_us", value: quota},
		// The limit for memory and swap must never be lower than that for memory alone.
		{controller: memory, file: "memory.memsw.limit_in_bytes", value: none, optional: true},
		{controller: memory, file: "memory.limit_in_bytes", value: bytes},
		{controller: memory, file: "memory.memsw.limit_in_bytes", value: bytes, optional: true},
	}
}
