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
	// Memory is how long samples are kept.
	Memory = engine.LongestWindow

	capacity = int(Memory / Interval)
)

// series is a quantity over time, with one value per sample, NaN if unknown.
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

// The quantities of an instance. New ones are added at the end, as histories written by earlier versions are read.
const (
	instanceCPUs = iota
	instanceMemory
	instanceGPUMemory
	instanceReceived
	instanceSent
	instanceQuantities
)

// history is a ring of a host's samples. It takes some kilobytes per quantity, whatever happens.
type history struct {
	// times are when the samples were taken, and next is the next index, of taken samples so far. A sample within
	// Interval of begun, the time of the newest slot's first sample, replaces that slot, so that samples for requests
	// don't displace older ones.
	times       [capacity]time.Time
	next, taken int
	begun       time.Time

	host      [hostQuantities]series
	gpus      map[string][]series // by UUID
	instances map[string][]series // by mark or container
	// seen is the number of the last sample that had an instance or a GPU: what is in no remaining sample is dropped.
	seen map[string]int
}

func newHistory() *history {
	return &history{gpus: map[string][]series{}, instances: map[string][]series{}, seen: map[string]int{}}
}

// add adds a sample, with the GPUs as they were read at about that time.
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

// place returns the index for a sample taken at this time.
func (h *history) place(now time.Time) int {
	if h.taken == 0 || now.Sub(h.begun) >= Interval {
		h.begun = now
		h.next = (h.next + 1) % capacity
		h.taken++
	}
	return (h.next - 1 + capacity) % capacity
}

// kept returns the series with this name, and adds them if there are none yet.
func (h *history) kept(all map[string][]series, name string, quantities int) []series {
	h.seen[name] = h.taken
	own, found := all[name]
	if !found {
		own = widened(nil, quantities)
		all[name] = own
	}
	return own
}

// widened appends empty series up to this number of quantities.
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

// forget drops what is in no remaining sample.
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

// within returns the indexes of the samples of a window that ends now, oldest first.
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

// measure returns the measure of a series over some samples.
func (s *series) measure(places []int) domain.Measure {
	values := make([]float64, len(places))
	for i, place := range places {
		values[i] = float64(s[place])
	}
	return domain.MeasureOf(values)
}
