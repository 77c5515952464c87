package sweep

import (
	"fmt"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// start is that of a run, which takes the memory that it asks for late.
type start struct {
	host string
	at   time.Time
	mib  int64
	// isNew is true of a start of this very decision: whatever is measured was so before it.
	isNew bool
}

// startsOf returns the starts of the runs that are on, where the memory counts that is free on hosts.
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

// freeMiB returns how much memory is free on each host of which that is known, less what runs that were just started
// will take.
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

// closedHosts returns the hosts that take no run of a sweep, those among them that have too little memory free.
func (d *decision) closedHosts(s domain.Sweep, freeMiB map[string]int64) map[string]string {
	closed := maps.Clone(d.cluster.Closed)
	if closed == nil {
		closed = map[string]string{}
	}
	for host := range d.cluster.Hosts {
		switch free, known := freeMiB[host]; {
		case closed[host] != "":
		case !known:
			closed[host] = fmt.Sprintf("how much memory of host %s is free is not known", host)
		case free < s.Resources.MemoryMiB:
			closed[host] = fmt.Sprintf("host %s has %d MiB of memory free beside what runs take that were just started, and a run needs %d", host, max(free, 0), s.Resources.MemoryMiB)
		}
	}
	return closed
}
