package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	mebibyte = 1 << 20
	percent  = 0.01
)

// quantity is an exported metric: a gauge or a counter.
type quantity struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
}

func gauge(name, help string, labels ...string) quantity {
	return quantity{prometheus.NewDesc("trainyard_"+name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) quantity {
	return quantity{prometheus.NewDesc("trainyard_"+name, help, labels, nil), prometheus.CounterValue}
}

// The labels of a host, a GPU and an instance; the controller's metrics map instances to members. The label is not
// called "instance", which Prometheus uses itself.
var (
	ofHost     = []string{"node"}
	ofGPU      = []string{"node", "uuid", "model"}
	ofInstance = []string{"node", "id"}
)

var (
	sampled = gauge("sample_timestamp_seconds", "When the agent took the sample that all other metrics are from.",
		ofHost...)

	hostCPUs    = gauge("host_cpus", "Online processors.", ofHost...)
	hostBusy    = gauge("host_cpus_busy", "Processors that were busy in the last second.", ofHost...)
	hostSeconds = counter("host_cpu_busy_seconds_total",
		"Time that processors were busy since boot, summed over all of them.", ofHost...)
	hostMemory   = gauge("host_memory_bytes", "Total memory.", ofHost...)
	hostUsed     = gauge("host_memory_used_bytes", "Memory that is not available without swapping.", ofHost...)
	hostLoad     = gauge("host_load1", "Processes that run or wait to run, averaged over a minute.", ofHost...)
	hostDisk     = gauge("host_disk_bytes", "Size of the file system that the agent is on.", ofHost...)
	hostDiskUsed = gauge("host_disk_used_bytes", "Space in use on the file system that the agent is on.", ofHost...)
	hostReceived = counter("host_network_received_bytes_total", "Bytes received from other hosts since boot.",
		ofHost...)
	hostSent = counter("host_network_sent_bytes_total", "Bytes sent to other hosts since boot.", ofHost...)
	hostGPUs = gauge("host_gpus", "GPUs that were found. Absent if it is unknown whether there are any.", ofHost...)

	gpuHealthy     = gauge("gpu_healthy", "1 if the GPU can be used, 0 if it can't.", ofGPU...)
	gpuUtilisation = gauge("gpu_utilization_ratio", "Share of the last sample period in which the GPU was busy.",
		ofGPU...)
	gpuCopying = gauge("gpu_memory_utilization_ratio",
		"Share of the last sample period in which the GPU's memory was read or written.", ofGPU...)
	gpuMemory      = gauge("gpu_memory_bytes", "Total memory of the GPU.", ofGPU...)
	gpuUsed        = gauge("gpu_memory_used_bytes", "Memory in use on the GPU.", ofGPU...)
	gpuTemperature = gauge("gpu_temperature_celsius", "Temperature of the GPU.", ofGPU...)
	gpuPower       = gauge("gpu_power_watts", "Power draw of the GPU.", ofGPU...)
	gpuPowerLimit  = gauge("gpu_power_limit_watts", "Power limit of the GPU.", ofGPU...)
	gpuECCErrors   = counter("gpu_ecc_errors_total",
		"Uncorrectable errors of the GPU's memory since the driver was loaded. Absent if ECC is off.", ofGPU...)
	gpuXID = gauge("gpu_xid",
		"Number of the last error that the driver has reported for the GPU since the agent started. Absent if "+
			"there was none.",
		ofGPU...)

	memberBusy = gauge("member_cpus_busy", "Processors that the member kept busy in the last second.",
		ofInstance...)
	memberMemory = gauge("member_memory_bytes",
		"Resident memory of the member's processes. Memory that several of them share counts for each.", ofInstance...)
	memberGPUMemory = gauge("member_gpu_memory_bytes", "Memory of the member's processes on GPUs.", ofInstance...)
	memberReceived  = counter("member_network_received_bytes_total",
		"Bytes that the member has received since it started. Absent if they are not counted separately from "+
			"its host's.",
		ofInstance...)
	memberSent = counter("member_network_sent_bytes_total",
		"Bytes that the member has sent since it started. Absent if they are not counted separately from its host's.",
		ofInstance...)
)

// collector exports a node's report. Unknown values are left out, as 0 would be wrong.
type collector struct {
	node   string
	report func() telemetry.Report
}

// Describe describes nothing, as the metrics depend on the report.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect exports a report.
func (c collector) Collect(to chan<- prometheus.Metric) {
	report := c.report()
	if report.Samples == 0 {
		return
	}
	newSeries(to, c.node).host(report)
	for _, gpu := range report.GPUs.GPUs {
		newSeries(to, c.node, gpu.UUID, gpu.Model).gpu(gpu)
	}
	for id, instance := range report.Instances {
		newSeries(to, c.node, id).member(instance)
	}
}

// series exports metrics with these label values.
type series struct {
	to     chan<- prometheus.Metric
	labels []string
}

// newSeries returns a series. Labels have to be valid UTF-8, which a driver's GPU names and a policy's metric names may
// not be.
func newSeries(to chan<- prometheus.Metric, labels ...string) series {
	for i, label := range labels {
		labels[i] = strings.ToValidUTF8(label, "\uFFFD")
	}
	return series{to, labels}
}

// value exports a value, multiplied by its unit, unless it is nil.
func (s series) value(of quantity, unit float64, value *float64) {
	if value != nil {
		s.to <- prometheus.MustNewConstMetric(of.description, of.kind, *value*unit, s.labels...)
	}
}

// whole is [series.value] for integers.
func whole[T int | int64](s series, of quantity, unit float64, value *T) {
	if value != nil {
		s.value(of, unit, new(float64(*value)))
	}
}

func (s series) host(report telemetry.Report) {
	h := report.Host
	s.value(sampled, 1, new(float64(report.SampledAt.UnixMilli())/1000))
	whole(s, hostCPUs, 1, &h.TotalCPUs)
	s.value(hostBusy, 1, h.CPUs.Last)
	s.value(hostSeconds, 1, &h.BusySeconds)
	whole(s, hostMemory, mebibyte, &h.TotalMemoryMiB)
	s.value(hostUsed, mebibyte, h.MemoryMiB.Last)
	s.value(hostLoad, 1, h.Load.Last)
	if h.DiskMiB.Last != nil {
		whole(s, hostDisk, mebibyte, &h.TotalDiskMiB)
	}
	s.value(hostDiskUsed, mebibyte, h.DiskMiB.Last)
	s.value(hostReceived, 1, h.ReceivedBytes)
	s.value(hostSent, 1, h.SentBytes)
	if report.GPUs.Unknown == "" {
		whole(s, hostGPUs, 1, new(len(report.GPUs.GPUs)))
	}
}

func (s series) gpu(g domain.GPU) {
	healthy := 1
	if g.Trouble != "" {
		healthy = 0
	}
	whole(s, gpuHealthy, 1, &healthy)
	s.value(gpuUtilisation, percent, g.Utilisation)
	s.value(gpuCopying, percent, g.MemoryUtilisation)
	if g.MemoryMiB > 0 {
		whole(s, gpuMemory, mebibyte, &g.MemoryMiB)
	}
	whole(s, gpuUsed, mebibyte, g.MemoryUsedMiB)
	whole(s, gpuTemperature, 1, g.TemperatureC)
	s.value(gpuPower, 1, g.PowerW)
	s.value(gpuPowerLimit, 1, g.PowerLimitW)
	whole(s, gpuECCErrors, 1, g.ECCErrors)
	whole(s, gpuXID, 1, g.XID)
}

func (s series) member(i telemetry.InstanceReport) {
	s.value(memberBusy, 1, i.CPUs.Last)
	s.value(memberMemory, mebibyte, i.MemoryMiB.Last)
	s.value(memberGPUMemory, mebibyte, i.GPUMemoryMiB.Last)
	s.value(memberReceived, 1, i.ReceivedBytes)
	s.value(memberSent, 1, i.SentBytes)
}
