package prometheus

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

// lab is a cluster of two hosts. One member runs on each, and one has ended.
type lab struct{ storetest.Memory }

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{}
	_, err := engine.Put(t.Context(), l, domain.ClusterDocument{Spec: domain.Cluster{
		Name: "lab", Hosts: map[string]domain.Host{"gpu1": {Address: "ssh://ops@10.0.0.1"}, "gpu2": {}},
	}})
	if err == nil {
		_, err = engine.Put(t.Context(), l, domain.GPUPoolDocument{
			Spec: domain.GPUPool{Name: "p"}, Devices: map[string][]domain.Device{"gpu2": {{UUID: "GPU-2"}}},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (*lab) Observe(context.Context, string) ([]domain.Observed, error) {
	return []domain.Observed{
		{Name: "job-ps-0", Group: "job", Role: "ps", Host: "gpu1", State: domain.StateRunning},
		{Name: "job-worker-0", Group: "job", Role: "worker", Host: "gpu2", State: domain.StateRunning},
		{Name: "job-worker-1", Group: "job", Role: "worker", Host: "gpu2", State: domain.StateCompleted},
	}, nil
}

// The exporters of host gpu1. Those of gpu2 are not scraped.
var exporters = []acctest.Exporter{
	{Instance: "10.0.0.1:9100", Metrics: func(seconds float64) string {
		return fmt.Sprintf(`
node_uname_info{nodename="gpu1.example.com"} 1
node_cpu_seconds_total{cpu="0",mode="idle"} %[1]f
node_cpu_seconds_total{cpu="0",mode="user"} %[2]f
node_cpu_seconds_total{cpu="1",mode="idle"} %[1]f
node_cpu_seconds_total{cpu="1",mode="system"} %[2]f
node_cpu_seconds_total{cpu="1",mode="iowait"} %[1]f
node_memory_MemTotal_bytes 1073741824
node_memory_MemAvailable_bytes 268435456
node_load1 1.5
node_filesystem_size_bytes{mountpoint="/"} 2147483648
node_filesystem_avail_bytes{mountpoint="/"} 1073741824
node_filesystem_size_bytes{mountpoint="/boot"} 5
node_network_receive_bytes_total{device="eth0"} %[3]f
node_network_receive_bytes_total{device="lo"} %[1]f
node_network_transmit_bytes_total{device="eth0"} %[3]f
`, seconds, 0.75*seconds, 1000*seconds)
	}},
	{Instance: "10.0.0.1:8080", Metrics: func(seconds float64) string {
		return fmt.Sprintf(`
container_cpu_usage_seconds_total{cpu="total",container_label_trainyard_cluster="lab",container_label_trainyard_member="job-ps-0",id="/docker/1"} %[1]f
container_memory_working_set_bytes{container_label_trainyard_cluster="lab",container_label_trainyard_member="job-ps-0",id="/docker/1"} 104857600
container_network_receive_bytes_total{container_label_trainyard_cluster="lab",container_label_trainyard_member="job-ps-0",id="/docker/1",interface="eth0"} %[2]f
container_network_receive_bytes_total{container_label_trainyard_cluster="lab",container_label_trainyard_member="job-ps-0",id="/docker/1",interface="eth1"} %[2]f
container_network_transmit_bytes_total{container_label_trainyard_cluster="lab",container_label_trainyard_member="job-ps-0",id="/docker/1",interface="eth0"} %[2]f
container_cpu_usage_seconds_total{cpu="total",container_label_trainyard_cluster="other",container_label_trainyard_member="job-worker-0",id="/docker/2"} %[1]f
container_memory_working_set_bytes{container_label_trainyard_cluster="other",container_label_trainyard_member="job-worker-0",id="/docker/2"} 1
container_cpu_usage_seconds_total{cpu="total",container_label_trainyard_cluster="lab",container_label_trainyard_member="job-worker-1",id="/docker/3"} %[1]f
`, seconds, 500*seconds)
	}},
	{Instance: "10.0.0.1:9400", Metrics: func(seconds float64) string {
		busy := 0 // busy in every other second
		if int(seconds)%2 == 0 {
			busy = 100
		}
		return fmt.Sprintf(`
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="4f2a9c"} %d
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",Hostname="4f2a9c"} 1000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1",Hostname="4f2a9c"} 31000
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="4f2a9c"} 60
`, busy)
	}},
}

// about fails unless all statistics of a measure are within 25 % of a value, as rates are inexact.
func about(t *testing.T, what string, got domain.Measure, want float64) {
	t.Helper()
	for statistic, value := range map[string]*float64{
		"last": got.Last, "mean": got.Mean, "max": got.Max, "p95": got.P95,
	} {
		if value == nil || math.Abs(*value-want) > 0.25*want {
			t.Errorf("%s: the %s is %v, want about %v", what, statistic, show(value), want)
		}
	}
}

func show(value *float64) string {
	if value == nil {
		return "unknown"
	}
	return fmt.Sprint(*value)
}

// A real Prometheus answers the built-in queries from the exporters' metrics.
func TestUsage(t *testing.T) {
	t.Parallel()
	settings := Settings{URL: acctest.StartPrometheus(t, exporters...), Timeout: patience.Limit}
	var usage engine.Usage
	acctest.Eventually(t, "GPU-1 to have worked, and to have been idle", func() bool {
		var err error
		if usage, err = Usage(acctest.Bounded(t), settings, newLab(t), time.Minute); err != nil {
			t.Fatal(err)
		}
		mean := usage.GPUs["GPU-1"].Utilisation.Mean
		return mean != nil && *mean > 0 && *mean < 100
	})

	gpu1 := usage.Hosts["gpu1"]
	about(t, "CPUs of gpu1", gpu1.CPUs, 1.5)
	about(t, "memory of gpu1", gpu1.MemoryMiB, 768)
	about(t, "load of gpu1", gpu1.Load, 1.5)
	about(t, "disk of gpu1", gpu1.DiskMiB, 1024)
	about(t, "what gpu1 received", gpu1.ReceivedBps, 1000)
	about(t, "what gpu1 sent", gpu1.SentBps, 1000)
	if gpu1.TotalCPUs != 2 || gpu1.TotalMemoryMiB != 1024 || gpu1.TotalDiskMiB != 2048 || gpu1.Reason != "" ||
		gpu1.GPUsReason != "" {
		t.Errorf("gpu1 is %+v", gpu1)
	}
	if age := time.Since(gpu1.SampledAt); age < 0 || age > patience.Limit {
		t.Errorf("gpu1 was sampled %s ago", age)
	}
	if gpu2 := usage.Hosts["gpu2"]; gpu2.CPUs.Last != nil || gpu2.CPUs.Mean != nil || !gpu2.SampledAt.IsZero() ||
		!strings.Contains(gpu2.Reason, "nothing for host_load with the query max by (instance) (node_load1)") ||
		gpu2.GPUsReason == "" {
		t.Errorf("gpu2, which is not scraped, is %+v", gpu2)
	}

	gpu := usage.GPUs["GPU-1"]
	about(t, "memory of GPU-1", gpu.MemoryMiB, 1000)
	about(t, "temperature of GPU-1", gpu.TemperatureC, 60)
	if gpu.Host != "gpu1" || gpu.TotalMemoryMiB != 32000 || gpu.PowerW.Last != nil ||
		!strings.Contains(gpu.Reason, "gpu_power_watts with the query") || strings.Contains(gpu.Reason, ";") {
		t.Errorf("GPU-1 is %+v", gpu)
	}
	if u := gpu.Utilisation; show(u.Max) != "100" || u.P95 == nil || *u.P95 < *u.Mean {
		t.Errorf("GPU-1 worked for a mean of %s %%, at most %s, p95 %s", show(u.Mean), show(u.Max), show(u.P95))
	}
	if lost := usage.GPUs["GPU-2"]; len(usage.GPUs) != 2 || lost.Host != "gpu2" || lost.Utilisation.Last != nil ||
		!strings.Contains(lost.Reason, "gpu_utilisation_percent") {
		t.Errorf("the GPUs are %+v", usage.GPUs)
	}

	ps := usage.Members["job-ps-0"]
	about(t, "CPUs of job-ps-0", ps.CPUs, 1)
	about(t, "memory of job-ps-0", ps.MemoryMiB, 100)
	about(t, "what job-ps-0 received", ps.ReceivedBps, 1000)
	about(t, "what job-ps-0 sent", ps.SentBps, 500)
	if ps.WhyNoTraffic() != "" || ps.Group != "job" || ps.Role != "ps" || ps.Host != "gpu1" ||
		ps.GPUMemoryMiB.Last != nil ||
		!strings.HasPrefix(ps.Reason, "no default query for member_gpu_memory_used_mib") {
		t.Errorf("job-ps-0 is %+v", ps)
	}
	if other := usage.Members["job-worker-0"]; other.CPUs.Last != nil ||
		!strings.Contains(other.Reason, `container_label_trainyard_cluster="lab"`) ||
		strings.Contains(other.Reason, "bytes_per_second") ||
		!strings.Contains(other.WhyNoTraffic(), "member_received_bytes_per_second with the query") {
		t.Errorf("job-worker-0, which another cluster has, too, is %+v", other)
	}
	if ended := usage.Members["job-worker-1"]; ended.CPUs.Last != nil || ended.Reason != "the member is completed" {
		t.Errorf("job-worker-1, which has ended, is %+v", ended)
	}
}

// A user's query overrides a built-in one, and its errors are reported.
func TestQueries(t *testing.T) {
	t.Parallel()
	address := acctest.StartPrometheus(t, exporters...)
	usage := func(quantity, query string) (float64, string, error) {
		settings := Settings{URL: address, Timeout: patience.Limit, Queries: map[string]string{quantity: query}}
		usage, err := Usage(acctest.Bounded(t), settings, newLab(t), 10*time.Second)
		load, memory := usage.Hosts["gpu1"].Load.Mean, usage.Members["job-ps-0"].GPUMemoryMiB.Last
		for _, value := range []*float64{memory, load} {
			if value != nil {
				return *value, usage.Hosts["gpu1"].Reason, err
			}
		}
		return 0, usage.Hosts["gpu1"].Reason, err
	}
	for name, test := range map[string]struct {
		quantity, query string
		want            float64
		reason, err     string
	}{
		"another one": {
			quantity: hostLoad, query: `label_replace(vector(7), "host", "gpu1", "", "") # whatever`, want: 7,
		},
		"one for the cluster": {
			quantity: memberGPUMemory,
			query:    `0 * container_memory_working_set_bytes{container_label_trainyard_cluster="$cluster"} + 9`,
			want:     9,
		},
		"nothing": {
			quantity: hostLoad, query: "absent_metric",
			reason: "Prometheus returns nothing for host_load with the query absent_metric",
		},
		"several values of a host": {
			quantity: hostLoad, query: "node_filesystem_size_bytes",
			reason: "Prometheus returns several values for host_load",
		},
		"no PromQL": {
			quantity: hostLoad, query: "node_load1{", err: "rejected the query for host_load, node_load1{:",
		},
		"no series": {quantity: hostCPUs, query: "1", err: "it returns a scalar"},
		"what can't be joined": {
			quantity: hostLoad, query: "node_filesystem_size_bytes * on (instance) node_filesystem_size_bytes",
			err: "rejected the query for host_load",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason, err := usage(test.quantity, test.query)
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("the error is %v, want %q", err, test.err)
				}
			case err != nil:
				t.Error(err)
			case test.reason == "" && got != test.want, test.reason != "" && !strings.Contains(reason, test.reason):
				t.Errorf("it is %v (%s), want %v (%s)", got, reason, test.want, test.reason)
			}
		})
	}
}
