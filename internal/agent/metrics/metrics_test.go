package metrics

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func last(value float64) domain.Measure { return domain.Measure{Last: &value} }

// full returns a report without unknown values.
func full() telemetry.Report {
	return telemetry.Report{
		Samples: 1, SampledAt: time.UnixMilli(1_700_000_000_250),
		Host: telemetry.HostReport{
			CPUs: last(1.5), TotalCPUs: 8, MemoryMiB: last(2048), TotalMemoryMiB: 4096, Load: last(0.5),
			DiskMiB: last(1), TotalDiskMiB: 2,
			BusySeconds: 1234.5, ReceivedBytes: new(7.0), SentBytes: new(0.0),
		},
		GPUs: domain.HostGPUs{GPUs: []domain.GPU{{
			Device:        domain.Device{UUID: "GPU-1", Model: "Tesla V100", MemoryMiB: 32768},
			MemoryUsedMiB: new(int64(16384)), Utilisation: new(50.0), MemoryUtilisation: new(25.0),
			TemperatureC: new(int64(60)),
			PowerW:       new(200.0), PowerLimitW: new(300.0), ECCErrors: new(int64(0)), XID: new(79),
			Trouble: "fallen off the bus (XID 79)",
		}}},
		Instances: map[string]telemetry.InstanceReport{"c0ffee": {
			CPUs: last(0.25), MemoryMiB: last(3), GPUMemoryMiB: last(0), ReceivedBytes: new(5.0), SentBytes: new(0.0),
		}},
	}
}

const everything = `
trainyard_gpu_ecc_errors_total{model="Tesla V100",node="node1",uuid="GPU-1"} 0
trainyard_gpu_healthy{model="Tesla V100",node="node1",uuid="GPU-1"} 0
trainyard_gpu_memory_bytes{model="Tesla V100",node="node1",uuid="GPU-1"} 3.4359738368e+10
trainyard_gpu_memory_used_bytes{model="Tesla V100",node="node1",uuid="GPU-1"} 1.7179869184e+10
trainyard_gpu_memory_utilization_ratio{model="Tesla V100",node="node1",uuid="GPU-1"} 0.25
trainyard_gpu_power_limit_watts{model="Tesla V100",node="node1",uuid="GPU-1"} 300
trainyard_gpu_power_watts{model="Tesla V100",node="node1",uuid="GPU-1"} 200
trainyard_gpu_temperature_celsius{model="Tesla V100",node="node1",uuid="GPU-1"} 60
trainyard_gpu_utilization_ratio{model="Tesla V100",node="node1",uuid="GPU-1"} 0.5
trainyard_gpu_xid{model="Tesla V100",node="node1",uuid="GPU-1"} 79
trainyard_host_cpu_busy_seconds_total{node="node1"} 1234.5
trainyard_host_cpus{node="node1"} 8
trainyard_host_cpus_busy{node="node1"} 1.5
trainyard_host_disk_bytes{node="node1"} 2.097152e+06
trainyard_host_disk_used_bytes{node="node1"} 1.048576e+06
trainyard_host_gpus{node="node1"} 1
trainyard_host_load1{node="node1"} 0.5
trainyard_host_memory_bytes{node="node1"} 4.294967296e+09
trainyard_host_memory_used_bytes{node="node1"} 2.147483648e+09
trainyard_host_network_received_bytes_total{node="node1"} 7
trainyard_host_network_sent_bytes_total{node="node1"} 0
trainyard_member_cpus_busy{id="c0ffee",node="node1"} 0.25
trainyard_member_gpu_memory_bytes{id="c0ffee",node="node1"} 0
trainyard_member_memory_bytes{id="c0ffee",node="node1"} 3.145728e+06
trainyard_member_network_received_bytes_total{id="c0ffee",node="node1"} 5
trainyard_member_network_sent_bytes_total{id="c0ffee",node="node1"} 0
trainyard_sample_timestamp_seconds{node="node1"} 1.70000000025e+09
`

// answer returns the lines of a handler's answer, without comments.
func answer(t *testing.T, handler http.Handler) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("%d %s", recorder.Code, recorder.Body)
	}
	var lines strings.Builder
	lines.WriteString("\n")
	for line := range strings.Lines(recorder.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func TestMetrics(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *telemetry.Report)
		// without are the metrics that are left out in this case, and instead those with other values.
		without []string
		instead map[string]string
	}{
		"all is known": {change: func(*telemetry.Report) {}},
		"what is not known is not exported": {
			change: func(r *telemetry.Report) {
				gpu := r.GPUs.GPUs[0].Device
				gpu.MemoryMiB = 0
				r.GPUs.GPUs[0] = domain.GPU{Device: gpu}
				r.Host.Load, r.Host.DiskMiB, r.Host.TotalDiskMiB = domain.Measure{}, domain.Measure{}, 0
				r.Host.ReceivedBytes, r.Host.SentBytes = nil, nil
				of := r.Instances["c0ffee"]
				of.CPUs, of.GPUMemoryMiB = domain.Measure{}, domain.Measure{}
				of.ReceivedBytes, of.SentBytes = nil, nil
				r.Instances["c0ffee"] = of
			},
			without: []string{
				"gpu_ecc", "gpu_memory", "gpu_power", "gpu_temperature", "gpu_utilization", "gpu_xid", "host_load1",
				"host_disk", "host_network",
				"member_cpus", "member_gpu", "member_network",
			},
			instead: map[string]string{`uuid="GPU-1"} 0`: `uuid="GPU-1"} 1`},
		},
		"GPUs are not known": {
			change:  func(r *telemetry.Report) { r.GPUs = domain.HostGPUs{Unknown: "no driver"} },
			without: []string{"gpu_", "host_gpus"},
		},
		"no sample yet": {
			change:  func(r *telemetry.Report) { *r = telemetry.Report{} },
			without: []string{""},
		},
		"a name that is no text": {
			change:  func(r *telemetry.Report) { r.GPUs.GPUs[0].Model = "Tesla\xff\"" },
			instead: map[string]string{`Tesla V100`: `Tesla�\"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := full()
			test.change(&report)
			var want strings.Builder
			for line := range strings.Lines(everything) {
				left := false
				for _, prefix := range test.without {
					left = left || strings.HasPrefix(line, "trainyard_"+prefix)
				}
				for old, now := range test.instead {
					line = strings.ReplaceAll(line, old, now)
				}
				if !left {
					want.WriteString(line)
				}
			}
			if got := answer(t,
				handler(collector{"node1", func() telemetry.Report { return report }})); got != want.String() {
				t.Errorf("got:%swant:%s", got, want.String())
			}
		})
	}
}

// TestNames: the names satisfy Prometheus' own linter.
func TestNames(t *testing.T) {
	problems, err := testutil.CollectAndLint(collector{"node1", full})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// metricName matches our metrics in a text.
var metricName = regexp.MustCompile(`\btrainyard_(sample|host|gpu|member|autoscaling)_[a-z0-9_]+`)

// alertName is the first line of an alert rule.
var alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)

// TestAlertRules has Prometheus' own tool test the alert rules of the module "monitoring".
func TestAlertRules(t *testing.T) {
	const alerts = "../../../modules/monitoring/alerts/"
	for _, args := range [][]string{
		{"check", "rules", alerts + "trainyard.yml"}, {"test", "rules", alerts + "trainyard_test.yml"},
	} {
		if output, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, output)
		}
	}
	rules, err := os.ReadFile(alerts + "trainyard.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(alerts + "trainyard_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alertName.FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(tests), "alertname: "+alert[1]+"\n") {
			t.Errorf("no test raises %s", alert[1])
		}
	}
}

// TestDocumented: the guide has a line for each metric and alert, and neither it, a dashboard nor an alert names a
// metric that doesn't exist.
func TestDocumented(t *testing.T) {
	named := func(text string) []string {
		names := metricName.FindAllString(text, -1)
		slices.Sort(names)
		return slices.Compact(names)
	}
	const root = "../../../"
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	there := named(everything + everyPolicy + everyMember)
	guide := read(root + "templates/guides/monitoring.md")
	var lines []string
	for line := range strings.Lines(guide) {
		if strings.HasPrefix(line, "| `trainyard_") {
			lines = append(lines, strings.Split(line, "`")[1])
		}
	}
	slices.Sort(lines)
	if diff := cmp.Diff(there, lines); diff != "" {
		t.Errorf("the guide's tables (-there is, +they have):\n%s", diff)
	}
	files, err := filepath.Glob(root + "modules/monitoring/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dashboards: %v", err)
	}
	const rules = root + "modules/monitoring/alerts/trainyard.yml"
	for _, found := range alertName.FindAllStringSubmatch(read(rules), -1) {
		if !strings.Contains(guide, "\n| `"+found[1]+"` |") {
			t.Errorf("the guide has no line for the alert %s", found[1])
		}
	}
	for _, file := range append(files, rules, root+"templates/guides/monitoring.md") {
		for _, name := range named(read(file)) {
			if !slices.Contains(there, name) {
				t.Errorf("%s speaks of %s, which there is not", file, name)
			}
		}
	}
}
