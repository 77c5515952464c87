package telemetry

import "time"

// sample is what a host and its instances used between two readings. Unknown values are NaN.
type sample struct {
	at        time.Time
	host      [hostQuantities]float64
	instances map[string]use
}

// The quantities of a host.
const (
	hostCPUs = iota
	hostMemory
	hostLoad
	hostDisk
	hostReceived
	hostSent
	hostQuantities
)

// use is what an instance uses: processors, unknown if the first reading had none of its processes; the resident memory
// of its processes in MiB, in which memory that several of them share counts for each; and the bytes per second that it
// received and sent.
type use struct {
	cpus, memory, received, sent float64
}
