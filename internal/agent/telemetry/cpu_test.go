//go:build linux

package telemetry

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

func TestCPUBetween(t *testing.T) {
	// The first reading is ten seconds after the boot; start is in seconds too.
	const firstAt = 10 * time.Second
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	process := func(pid, parent, start, cpu, waited int) proctree.Process {
		return proctree.Process{
			PID: pid, Parent: parent, StartTime: uint64(seconds(start) / proctree.ClockTick),
			CPU: seconds(cpu), WaitedCPU: seconds(waited),
		}
	}
	type processes = []proctree.Process
	for name, test := range map[string]struct {
		first, second processes
		want          int
	}{
		"the sum over processes that stay": {
			first:  processes{process(1, 0, 1, 5, 0), process(2, 1, 1, 7, 0)},
			second: processes{process(1, 0, 1, 6, 0), process(2, 1, 1, 9, 0)},
			want:   3,
		},
		"one that was born counts in full": {
			first:  processes{process(1, 0, 1, 5, 0)},
			second: processes{process(1, 0, 1, 5, 0), process(2, 1, 11, 2, 1)},
			want:   3,
		},
		"an instance that was born counts in full": {
			second: processes{process(1, 0, 10, 2, 0)},
			want:   2,
		},
		"one that was there before but not seen is not known": {
			second: processes{process(1, 0, 9, 50, 20)},
			want:   0,
		},
		"one whose id passed to another": {
			first:  processes{process(1, 0, 1, 50, 0)},
			second: processes{process(1, 0, 12, 2, 0)},
			want:   2,
		},
		"one that was born, ended and was waited for": {
			first:  processes{process(1, 0, 1, 5, 0)},
			second: processes{process(1, 0, 1, 5, 2)},
			want:   2,
		},
		"one that ended and was waited for counts from the first reading": {
			first:  processes{process(1, 0, 1, 5, 0), process(2, 1, 1, 40, 10)},
			second: processes{process(1, 0, 1, 6, 53)},
			want:   4,
		},
		"a parent and its child that ended and were waited for": {
			first:  processes{process(1, 0, 1, 0, 1), process(2, 1, 1, 10, 0), process(3, 2, 1, 20, 0)},
			second: processes{process(1, 0, 1, 0, 33)},
			want:   2,
		},
		"one that ended without being waited for takes nothing from the others": {
			first:  processes{process(1, 0, 1, 5, 0), process(2, 1, 1, 40, 0), process(3, 0, 1, 90, 0)},
			second: processes{process(1, 0, 1, 6, 0)},
			want:   1,
		},
		"an instance that ended": {
			first: processes{process(1, 0, 1, 5, 0)},
		},
		"a cycle ends": {
			first: processes{process(1, 2, 1, 5, 0), process(2, 1, 1, 5, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cpuBetween(test.first, test.second, firstAt); got != seconds(test.want) {
				t.Errorf("%s, want %d s", got, test.want)
			}
		})
	}
}
