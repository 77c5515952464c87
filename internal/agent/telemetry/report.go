package telemetry

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Report is what the agent of a host reports.
type Report struct {
	// Node is the engine's name for the agent's host; empty if the agent doesn't know it.
	Node string     `json:"node,omitempty"`
	Host HostReport `json:"host"`
	// GPUs are the GPUs as last read, and Devices their measures, by UUID.
	GPUs    domain.HostGPUs         `json:"gpus"`
	Devices map[string]DeviceReport `json:"devices,omitempty"`
	// Starting means that the agent was just started, and has not found the GPUs yet, which are unknown then.
	Starting bool `json:"starting,omitempty"`
	// Instances are the running ones, by the mark of their processes, or their container.
	Instances map[string]InstanceReport `json:"instances,omitempty"`
	// Since and SampledAt are the times of the window's first and last sample, and Samples is their number.
	Since     time.Time `json:"since"`
	SampledAt time.Time `json:"sampled_at"`
	Samples   int       `json:"samples"`
}

// HostReport is the usage of a host by everything that runs on it.
type HostReport struct {
	// CPUs is the number of busy processors, from 0 to TotalCPUs, which counts all that are online.
	CPUs      domain.Measure `json:"cpus"`
	TotalCPUs int            `json:"total_cpus"`
	// MemoryMiB is the memory that is not available to new processes without swapping, of TotalMemoryMiB.
	MemoryMiB      domain.Measure `json:"memory_mib"`
	TotalMemoryMiB int64          `json:"total_memory_mib"`
	// Load is the number of processes that run or wait to run, averaged over a minute.
	Load domain.Measure `json:"load"`
	// DiskMiB is the used space of the agent's file system, of TotalDiskMiB.
	DiskMiB      domain.Measure `json:"disk_mib"`
	TotalDiskMiB int64          `json:"total_disk_mib"`
	// ReceivedBps and SentBps are the bytes per second through its interfaces to other hosts.
	ReceivedBps domain.Measure `json:"received_bps"`
	SentBps     domain.Measure `json:"sent_bps"`
	// BusySeconds is the processor time used since the boot, and ReceivedBytes and SentBytes the bytes through its
	// interfaces; nil if they can't be read.
	BusySeconds   float64  `json:"busy_seconds"`
	ReceivedBytes *float64 `json:"received_bytes,omitempty"`
	SentBytes     *float64 `json:"sent_bytes,omitempty"`
}

// DeviceReport is the usage of a GPU.
type DeviceReport struct {
	Utilisation  domain.Measure `json:"utilisation"` // in percent of the time
	MemoryMiB    domain.Measure `json:"memory_mib"`
	TemperatureC domain.Measure `json:"temperature_c"`
	PowerW       domain.Measure `json:"power_w"`
}

// InstanceReport is what the processes of an instance use.
type InstanceReport struct {
	// CPUs is the number of processors that they kept busy.
	CPUs domain.Measure `json:"cpus"`
	// MemoryMiB is their resident memory; memory that several of them share counts for each.
	MemoryMiB domain.Measure `json:"memory_mib"`
	// GPUMemoryMiB is their memory on the host's GPUs.
	GPUMemoryMiB domain.Measure `json:"gpu_memory_mib"`
	// ReceivedBps and SentBps are the bytes per second that they received and sent, and ReceivedBytes and SentBytes
	// those since the instance started. TrafficUnknown is why they are unknown.
	ReceivedBps    domain.Measure `json:"received_bps,omitzero"`
	SentBps        domain.Measure `json:"sent_bps,omitzero"`
	ReceivedBytes  *float64       `json:"received_bytes,omitempty"`
	SentBytes      *float64       `json:"sent_bytes,omitempty"`
	TrafficUnknown string         `json:"traffic_unknown,omitempty"`
}

// report returns the report of a window that ends now.
func (h *history) report(window time.Duration, now time.Time) Report {
	places := h.within(window, now)
	if len(places) == 0 {
		return Report{}
	}
	last := places[len(places)-1]
	r := Report{
		Host: HostReport{
			CPUs: h.host[hostCPUs].measure(places), MemoryMiB: h.host[hostMemory].measure(places),
			Load:    h.host[hostLoad].measure(places),
			DiskMiB: h.host[hostDisk].measure(places), ReceivedBps: h.host[hostReceived].measure(places),
			SentBps: h.host[hostSent].measure(places),
		},
		Devices: map[string]DeviceReport{}, Instances: map[string]InstanceReport{},
		Since: h.times[places[0]], SampledAt: h.times[last], Samples: len(places),
	}
	for uuid, own := range h.gpus {
		r.Devices[uuid] = DeviceReport{
			Utilisation: own[gpuUtilisation].measure(places), MemoryMiB: own[gpuMemory].measure(places),
			TemperatureC: own[gpuTemperature].measure(places), PowerW: own[gpuPower].measure(places),
		}
	}
	for id, own := range h.instances {
		if math.IsNaN(float64(own[instanceCPUs][last])) {
			continue // it has ended
		}
		r.Instances[id] = InstanceReport{
			CPUs: own[instanceCPUs].measure(places), MemoryMiB: own[instanceMemory].measure(places),
			GPUMemoryMiB: own[instanceGPUMemory].measure(places),
			ReceivedBps:  own[instanceReceived].measure(places), SentBps: own[instanceSent].measure(places),
		}
	}
	return r
}

// known returns a value, or nil for NaN.
func known(value float64) *float64 {
	if math.IsNaN(value) {
		return nil
	}
	return &value
}

// ReadReport reads the output of an agent.
func ReadReport(text []byte) (Report, error) {
	var report Report
	if err := json.Unmarshal(text, &report); err != nil {
		return Report{}, fmt.Errorf("parsing the agent's report %.100q: %w", text, err)
	}
	return report, nil
}
