package telemetry

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// Interval is the time between two samples.
	Interval = engine.ShortestWindow
	// Memory is for how long samples are remembered.
	Memory = engine.LongestWindow

	capacity = int(Memory / Interval)
)

// series is a quantity over time, one value a sample, NaN where it was not known.
type series [capacity]float32

var unknown = float32(math.NaN())

// The quantities of a GPU.
const (
	gpuUtilisation = iota
	gpuMemory
	gpuTemperature
	gpuPower
	gpuQuantities
)

// The quantities of an instance. Others come behind these, in which a history is read that an earlier version wrote.
const (
	instanceCPUs = iota
	instanceMemory
	instanceGPUMemory
	instanceReceived
	instanceSent
	instanceQuantities
)

// history is what is remembered of a host: a ring of samples. It takes some kilobytes a quantity, whatever happens.
type history struct {
	// times are when the samples were taken, and next is the place of the next one, out of taken so far. The newest
	// place was begun at a time: what is sampled before the next interval takes its place, so that questions, which are
	// samples, too, don't drive out what is remembered.
	times       [capacity]time.Time
	next, taken int
	begun       time.Time

	host      [hostQuantities]series
	gpus      map[string][]series // by UUID
	instances map[string][]series // by mark or container
	// seen is the sample, counted from the first, in which an instance or a GPU was seen last: what is in no sample any
	// more is forgotten.
	seen map[string]int
}

func newHistory() *history {
	return &history{gpus: map[string][]series{}, instances: map[string][]series{}, seen: map[string]int{}}
}

// add remembers a sample, with the GPUs as they were found about then.
func (h *history) add(s sample, gpus domain.HostGPUs) {
	at := h.place(s.at)
	h.times[at] = s.at
	for q := range h.host {
		h.host[q][at] = float32(s.host[q])
	}
	for _, named := range []map[string][]series{h.gpus, h.instances} {
		for _, own := range named {
			for q := range own {
				own[q][at] = unknown
			}
		}
	}
	for _, g := range gpus.GPUs {
		own := h.kept(h.gpus, g.UUID, gpuQuantities)
		own[gpuUtilisation][at] = orNaN(g.Utilisation)
		own[gpuMemory][at] = orNaN(g.MemoryUsedMiB)
		own[gpuTemperature][at] = orNaN(g.TemperatureC)
		own[gpuPower][at] = orNaN(g.PowerW)
	}
	for id, used := range s.instances {
		own := h.kept(h.instances, id, instanceQuantities)
		own[instanceCPUs][at], own[instanceMemory][at] = float32(used.cpus), float32(used.memory)
		own[instanceGPUMemory][at] = float32(engine.GPUMemory(id, gpus))
		own[instanceReceived][at], own[instanceSent][at] = float32(used.received), float32(used.sent)
	}
	h.forget()
}

// place returns the place of a sample of a time.
func (h *history) place(now time.Time) int {
	if h.taken == 0 || now.Sub(h.begun) >= Interval {
		h.begun = now
		h.next = (h.next + 1) % capacity
		h.taken++
	}
	return (h.next - 1 + capacity) % capacity
}

// kept returns the series of what has this name, which are new where it has none yet.
func (h *history) kept(all map[string][]series, name string, quantities int) []series {
	h.seen[name] = h.taken
	own, found := all[name]
	if !found {
		own = widened(nil, quantities)
		all[name] = own
	}
	return own
}

// widened returns the series with others behind them, in which nothing is known, up to a number of quantities.
func widened(own []series, quantities int) []series {
	for len(own) < quantities {
		var another series
		for i := range another {
			another[i] = unknown
		}
		own = append(own, another)
	}
	return own
}

// forget drops what was in no sample that is still remembered.
func (h *history) forget() {
	for name, last := range h.seen {
		if h.taken-last >= capacity {
			delete(h.seen, name)
			delete(h.gpus, name)
			delete(h.instances, name)
		}
	}
}

func orNaN[T int64 | float64](value *T) float32 {
	if value == nil {
		return unknown
	}
	return float32(*value)
}

// within returns the places of the samples of a window that ends now, the oldest first.
func (h *history) within(window time.Duration, now time.Time) []int {
	var places []int
	for i := range min(h.taken, capacity) {
		place := (h.next - 1 - i + 2*capacity) % capacity
		if i > 0 && now.Sub(h.times[place]) > window {
			break
		}
		places = append(places, place)
	}
	slices.Reverse(places)
	return places
}

// measure returns the measure of a series at some places.
func (s *series) measure(places []int) domain.Measure {
	values := make([]float64, len(places))
	for i, place := range places {
		values[i] = float64(s[place])
	}
	return domain.MeasureOf(values)
}
