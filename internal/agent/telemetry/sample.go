package telemetry

import "time"

// sample is what a host and its instances used between two readings. What is not known is NaN.
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

// use is what an instance uses: processors, which are not known where none of its processes was seen at the first
// reading, the resident memory of its processes in MiB, of which what several of them share counts for each, and the
// bytes that it received and sent in a second.
type use struct {
	cpus, memory, received, sent float64
}
