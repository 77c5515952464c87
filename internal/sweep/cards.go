package sweep

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// card is the usage of a device by runs.
type card struct {
	// active is the number of runs on it. started is when the last of them started, and ended when the last former one
	// ended.
	active         int
	started, ended time.Time
	// given is true once this decision has given it to a run.
	given bool
	// beside is how many other runs were on it when one ran out of memory, at ranOut.
	beside int
	ranOut time.Time
}

// cardsOf returns the usage of devices by the runs of all sweeps.
func cardsOf(queues []Queue) map[string]*card {
	cards := map[string]*card{}
	for _, q := range queues {
		for _, run := range q.Runs {
			if run.Assignment != nil {
				for c := range cardsIn(cards, run.Assignment.GPUs) {
					c.note(run)
				}
			}
			if run.RanOut != nil {
				for c := range cardsIn(cards, run.RanOut.GPUs) {
					c.noteRanOut(*run.RanOut)
				}
			}
		}
	}
	return cards
}

// cardsIn yields the cards of some devices, and creates missing ones. It is called for each run that ever had one.
func cardsIn(cards map[string]*card, devices domain.DeviceSet) iter.Seq[*card] {
	return func(yield func(*card) bool) {
		if devices == "" {
			return
		}
		for uuid := range strings.SplitSeq(string(devices), ",") {
			if cards[uuid] == nil {
				cards[uuid] = &card{}
			}
			if !yield(cards[uuid]) {
				return
			}
		}
	}
}

func (c *card) note(run domain.Run) {
	switch {
	case run.Active():
		c.active++
		if run.StartedAt != nil && run.StartedAt.After(c.started) {
			c.started = *run.StartedAt
		}
	// which makes no room for more
	case run.FinishedAt == nil || run.RanOut != nil && run.RanOut.At.Equal(*run.FinishedAt):
	case run.FinishedAt.After(c.ended):
		c.ended = *run.FinishedAt
	}
}

func (c *card) noteRanOut(out domain.RanOut) {
	if out.At.After(c.ranOut) || out.At.Equal(c.ranOut) && out.Beside < c.beside {
		c.ranOut, c.beside = out.At, out.Beside
	}
}

// limits reports whether a device takes no more runs than it had when one ran out of memory there. That ends when
// another run ends.
func (c *card) limits() bool { return !c.ranOut.IsZero() && !c.ended.After(c.ranOut) }

// full reports whether a device takes no further run because of its limit. If no run is on it, there is nothing to wait
// for.
func (c *card) full() bool { return c != nil && c.limits() && c.active > 0 && c.active >= c.beside }

// settling returns until when a start counts as recent; false if it no longer does. A start further than that in the
// future comes from a clock that was set back, and is ignored.
func settling(started time.Time, settle time.Duration, now time.Time) (until time.Time, is bool) {
	until = started.Add(settle)
	return until, until.After(now) && !until.After(now.Add(2*settle))
}

func settleOf(s domain.Sweep) time.Duration {
	return s.Admission.Settle.Or(time.Duration(domain.DefaultSettle))
}

// limited reports whether a device of a sweep's pool is limited to a number of runs.
func (d *decision) limited(s domain.Sweep) bool {
	if s.GPUs == nil {
		return false
	}
	for uuid, c := range d.cards {
		if c.limits() && d.cluster.Pools[s.GPUs.Pool].Has(uuid) {
			return true
		}
	}
	return false
}

// take records that a run starts on devices.
func (d *decision) take(at domain.Assignment) {
	for c := range cardsIn(d.cards, at.GPUs) {
		c.active++
		c.started, c.given = d.now, true
	}
}

// closedDevices returns the state of the devices, including why some take no run of a sweep at present.
func (d *decision) closedDevices(s domain.Sweep) map[string]placement.DeviceState {
	if s.GPUs == nil {
		return d.cluster.Devices
	}
	states := maps.Clone(d.cluster.Devices)
	if states == nil {
		states = map[string]placement.DeviceState{}
	}
	for _, devices := range d.cluster.Pools[s.GPUs.Pool].Devices {
		for _, device := range devices {
			state := states[device.UUID]
			if state.Closed == "" {
				state.Closed = d.closed(s, device)
			}
			if state != (placement.DeviceState{}) {
				states[device.UUID] = state
			}
		}
	}
	return states
}

// closed says why a device takes no run of a sweep at present; "" if it does.
func (d *decision) closed(s domain.Sweep, device domain.Device) string {
	c := d.cards[device.UUID]
	if c.full() {
		return fmt.Sprintf("a run ran out of its memory beside %d others: it is limited to that many until one ends",
			c.beside)
	}
	if !s.Admission.FreeGPUMemory {
		return ""
	}
	settle := settleOf(s)
	if c != nil {
		if until, is := settling(c.started, settle, d.now); is {
			d.wake(until)
			return fmt.Sprintf("a run was started on it less than %s ago (admission.settle)", settle)
		}
		if c.given {
			return "it has just been given to another run"
		}
	}
	need := needed(s, device)
	switch free, known := d.cluster.FreeGPUMiB[device.UUID]; {
	case !known:
		return "its free memory is unknown"
	case free < need:
		return fmt.Sprintf("%d MiB of its memory are free, and a run needs %d with the reserve", free, need)
	}
	return ""
}

// needed returns how much memory of a device has to be free for a run to start, in MiB.
func needed(s domain.Sweep, device domain.Device) int64 {
	return s.GPUs.MemoryMiB + int64(math.Ceil(s.Admission.Reserve()*float64(device.MemoryMiB)))
}

// tooSmall returns the state of the devices, with those closed that can never have as much free memory as a sweep waits
// for.
func tooSmall(
	s domain.Sweep, pools map[string]domain.GPUPoolDocument, known map[string]placement.DeviceState,
) map[string]placement.DeviceState {
	if s.GPUs == nil || !s.Admission.FreeGPUMemory {
		return known
	}
	states := make(map[string]placement.DeviceState, len(known))
	maps.Copy(states, known)
	for _, devices := range pools[s.GPUs.Pool].Devices {
		for _, device := range devices {
			if need := needed(s, device); need > device.MemoryMiB {
				state := states[device.UUID]
				state.Closed = fmt.Sprintf("it has %d MiB of memory, and a run needs %d free, with the reserve",
					device.MemoryMiB, need)
				states[device.UUID] = state
			}
		}
	}
	return states
}
