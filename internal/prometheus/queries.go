package prometheus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// clusterVariable stands for the name of the cluster in a query.
const clusterVariable = "$cluster"

// The quantities of which only the current value is queried: they don't change, or have no statistics.
const (
	hostCPUs      = "host_cpus"
	hostMemory    = "host_memory_mib"
	hostDisk      = "host_disk_mib"
	hostSampled   = "host_sampled_at"
	gpuMemory     = "gpu_memory_mib"
	gpuSampled    = "gpu_sampled_at"
	memberSampled = "member_sampled_at"
)

// The quantities that are queried over a window.
const (
	hostCPUsUsed     = "host_cpus_used"
	hostMemoryUsed   = "host_memory_used_mib"
	hostLoad         = "host_load"
	hostDiskUsed     = "host_disk_used_mib"
	hostReceived     = "host_received_bytes_per_second"
	hostSent         = "host_sent_bytes_per_second"
	gpuUtilisation   = "gpu_utilisation_percent"
	gpuMemoryUsed    = "gpu_memory_used_mib"
	gpuTemperature   = "gpu_temperature_celsius"
	gpuPower         = "gpu_power_watts"
	memberCPUsUsed   = "member_cpus_used"
	memberMemoryUsed = "member_memory_used_mib"
	memberGPUMemory  = "member_gpu_memory_used_mib"
	memberReceived   = "member_received_bytes_per_second"
	memberSent       = "member_sent_bytes_per_second"
)

// Selectors for the containers of a cluster's members as cAdvisor labels them, for network interfaces to other hosts
// (an agent excludes the same), and for the root filesystem.
const (
	ofMembers    = `{container_label_trainyard_cluster="` + clusterVariable + `"}`
	toOtherHosts = `{device!~"lo|veth.*|docker.*|podman.*|br-.*|br[0-9]+|virbr.*|vmbr[0-9]+|vnet.*|cni.*|` +
		`cali.*|flannel.*|vxlan.*|tap.*|tun.*|wg.*|tailscale.*|bond[0-9]+|team[0-9]+|vlan[0-9]+|.+[.][0-9]+"}`
	onRoot = `{mountpoint="/"}`
)

// once are the built-in queries of quantities without a window.
var once = map[string]string{
	hostCPUs:    `count by (instance) (node_cpu_seconds_total{mode="idle"})`,
	hostMemory:  `max by (instance) (node_memory_MemTotal_bytes) / 1048576`,
	hostDisk:    `max by (instance) (node_filesystem_size_bytes` + onRoot + `) / 1048576`,
	hostSampled: `max by (instance) (timestamp(node_memory_MemTotal_bytes))`,
	gpuMemory:   `max by (UUID) (DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_USED)`,
	gpuSampled:  `max by (UUID, Hostname, instance) (timestamp(DCGM_FI_DEV_GPU_UTIL))`,
	memberSampled: `max by (container_label_trainyard_member) (timestamp(container_memory_working_set_bytes` +
		ofMembers + `))`,
}

// overWindow are the built-in queries of quantities over a window. Counters of node_exporter and cAdvisor become rates
// by their last two scrapes, whatever the scrape interval. "and" drops containers that have ended, which irate would
// still report. DCGM has no memory usage by process.
var overWindow = map[string]string{
	hostCPUsUsed:   `sum by (instance) (irate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[2m]))`,
	hostMemoryUsed: `max by (instance) (node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes) / 1048576`,
	hostLoad:       `max by (instance) (node_load1)`,
	hostDiskUsed: `max by (instance) (node_filesystem_size_bytes` + onRoot + ` - node_filesystem_avail_bytes` +
		onRoot + `) / 1048576`,
	hostReceived:   `sum by (instance) (irate(node_network_receive_bytes_total` + toOtherHosts + `[2m]))`,
	hostSent:       `sum by (instance) (irate(node_network_transmit_bytes_total` + toOtherHosts + `[2m]))`,
	gpuUtilisation: `max by (UUID) (DCGM_FI_DEV_GPU_UTIL)`,
	gpuMemoryUsed:  `max by (UUID) (DCGM_FI_DEV_FB_USED)`,
	gpuTemperature: `max by (UUID) (DCGM_FI_DEV_GPU_TEMP)`,
	gpuPower:       `max by (UUID) (DCGM_FI_DEV_POWER_USAGE)`,
	memberCPUsUsed: `sum by (container_label_trainyard_member) (irate(container_cpu_usage_seconds_total` + ofMembers +
		`[2m]) and container_cpu_usage_seconds_total)`,
	memberMemoryUsed: `sum by (container_label_trainyard_member) (container_memory_working_set_bytes` + ofMembers +
		`) / 1048576`,
	memberGPUMemory: ``,
	memberReceived: `sum by (container_label_trainyard_member) (irate(container_network_receive_bytes_total` +
		ofMembers +
		`[2m]) and container_network_receive_bytes_total)`,
	memberSent: `sum by (container_label_trainyard_member) (irate(container_network_transmit_bytes_total` + ofMembers +
		`[2m]) and container_network_transmit_bytes_total)`,
}

// Quantities returns the names of the quantities that queries are for, sorted.
func Quantities() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, queries := range []map[string]string{once, overWindow} {
			for name := range queries {
				if !yield(name) {
					return
				}
			}
		}
	})
}

// Query returns the built-in query of a quantity; empty if there is none.
func Query(quantity string) string { return once[quantity] + overWindow[quantity] }

// statisticLabel distinguishes the statistics of a quantity.
const statisticLabel = "trainyard_statistic"

// The statistics of a quantity: its last value, and three over the window.
const (
	statisticLast = "last"
	statisticMean = "mean"
	statisticMax  = "max"
	statisticP95  = "p95"
)

// functions are the PromQL expressions of the statistics, over the query at all steps of the window.
var functions = map[string]string{
	statisticLast: "%[1]s",
	statisticMean: "avg_over_time(%[1]s[%[2]s])",
	statisticMax:  "max_over_time(%[1]s[%[2]s])",
	statisticP95:  "quantile_over_time(0.95, %[1]s[%[2]s])",
}

// statisticsOf returns a single query for all statistics of a query over a window.
func statisticsOf(query string, window, step time.Duration) string {
	subquery := fmt.Sprintf("%dms:%dms", window.Milliseconds(), step.Milliseconds())
	parts := make([]string, 0, len(functions))
	for _, statistic := range slices.Sorted(maps.Keys(functions)) {
		// The newline ends a comment at the end of the query.
		of := fmt.Sprintf(functions[statistic], "("+query+"\n)", subquery)
		parts = append(parts, fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, of, statisticLabel, statistic))
	}
	return strings.Join(parts, " or ")
}

// stepOf returns the interval between the values of a window: no shorter than the shortest usual scrape interval,
// and no longer than most.
func stepOf(window time.Duration) time.Duration {
	const values = 60
	return min(max((window/values).Truncate(time.Second), time.Second), 15*time.Second)
}

// lastStep returns the last time up to now at which a subquery is evaluated: Prometheus uses
// multiples of the step since 1970.
func lastStep(now time.Time, step time.Duration) time.Time {
	return time.UnixMilli(now.UnixMilli() / step.Milliseconds() * step.Milliseconds())
}
