package sweep

import (
	"fmt"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// start is the start of a run, which allocates its memory later.
type start struct {
	host string
	at   time.Time
	mib  int64
	// isNew is true for a start of this decision, which is later than any measurement.
	isNew bool
}

// startsOf returns the starts of the active runs, if free host memory matters to any sweep.
func startsOf(queues []Queue) []start {
	counts := false
	for _, q := range queues {
		counts = counts || q.Spec.Admission.FreeMemory
	}
	if !counts {
		return nil
	}
	var starts []start
	for _, q := range queues {
		for _, run := range q.Runs {
			if !run.Active() || run.StartedAt == nil {
				continue
			}
			mib := q.Spec.Resources.MemoryMiB
			if run.Needs != nil {
				mib = run.Needs.Resources.MemoryMiB
			}
			starts = append(starts, start{host: run.Assignment.Host, at: *run.StartedAt, mib: mib})
		}
	}
	return starts
}

// freeMiB returns how much memory is free on each host where that is known, less what recently started runs will take.
func (d *decision) freeMiB(s domain.Sweep) map[string]int64 {
	free := make(map[string]int64, len(d.cluster.FreeMiB))
	maps.Copy(free, d.cluster.FreeMiB)
	for _, start := range d.starts {
		until, settles := settling(start.at, settleOf(s), d.now)
		if _, known := free[start.host]; !known || !settles && !start.isNew {
			continue
		}
		free[start.host] -= start.mib
		if settles {
			d.wake(until)
		}
	}
	return free
}

// closedHosts returns the hosts that take no run of a sweep, including those with too little free memory.
func (d *decision) closedHosts(s domain.Sweep, freeMiB map[string]int64) map[string]string {
	closed := maps.Clone(d.cluster.Closed)
	if closed == nil {
		closed = map[string]string{}
	}
	for host := range d.cluster.Hosts {
		switch free, known := freeMiB[host]; {
		case closed[host] != "":
		case !known:
			closed[host] = fmt.Sprintf("the free memory of host %s is unknown", host)
		case free < s.Resources.MemoryMiB:
			closed[host] = fmt.Sprintf(
				"host %s has %d MiB of memory free beyond what runs that just started will take, and a run needs %d",
				host, max(free, 0), s.Resources.MemoryMiB,
			)
		}
	}
	return closed
}
