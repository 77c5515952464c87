//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// asks returns the configuration of the utilisation with these attributes, to be read after the group.
func asks(attributes string) string {
	return `
data "trainyard_utilisation" "now" {
  cluster    = trainyard_cluster.lab
  depends_on = [trainyard_group.job]
  ` + attributes + `
}
`
}

// The utilisation comes from a real Prometheus that scrapes what node_exporter, cAdvisor and dcgm-exporter report about
// this host.
func TestAccUtilisationFromPrometheus(t *testing.T) {
	l := newLab(t)
	address := acctest.StartPrometheus(t,
		acctest.Exporter{Instance: "127.0.0.1:9100", Metrics: func(seconds float64) string {
			return fmt.Sprintf(
				"node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} %f\nnode_memory_MemTotal_bytes 2097152\nnode_memory_MemAvailable_bytes 1048576\nnode_load1 2\n",
				seconds,
			)
		}},
		acctest.Exporter{Instance: "127.0.0.1:8080", Metrics: func(seconds float64) string {
			const labels = `{container_label_trainyard_cluster="lab",container_label_trainyard_member="job-worker-0"}`
			return fmt.Sprintf(
				"container_cpu_usage_seconds_total%[1]s %[2]f\ncontainer_memory_working_set_bytes%[1]s 3145728\n",
				labels, seconds/2,
			)
		}},
		acctest.Exporter{Instance: "127.0.0.1:9400", Metrics: func(float64) string {
			return "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\"} 40\nDCGM_FI_DEV_FB_USED{UUID=\"GPU-1\"} 100\nDCGM_FI_DEV_FB_FREE{UUID=\"GPU-1\"} 900\n"
		}},
	)
	config := func(queries string) string {
		return l.job(waiting("replicas = 2")) +
			asks(fmt.Sprintf("source = \"prometheus\"\n prometheus = { url = %q, queries = { %s } }", address, queries))
	}
	shows := func(of, name, attribute string, check knownvalue.Check) statecheck.StateCheck {
		at := tfjsonpath.New(of).AtMapKey(name)
		for part := range strings.SplitSeq(attribute, ".") {
			at = at.AtMapKey(part)
		}
		return statecheck.ExpectKnownValue("data.trainyard_utilisation.now", at, check)
	}
	exactly, whole, null := knownvalue.Float64Exact, knownvalue.Int64Exact, knownvalue.Null()
	about := func(want float64) knownvalue.Check {
		return knownvalue.Float64Func(func(v float64) error {
			if v < 0.75*want || v > 1.25*want {
				return fmt.Errorf("%v is not about %v", v, want)
			}
			return nil
		})
	}
	l.test(
		resource.TestStep{
			Config: config(""),
			ConfigStateChecks: []statecheck.StateCheck{
				shows("hosts", "local", "cpus_used", about(1)),
				shows("hosts", "local", "mean.memory_used_mib", exactly(1)),
				shows("hosts", "local", "memory_mib", whole(2)),
				shows("hosts", "local", "sent_bytes_per_second", null),
				shows("hosts", "local", "reason",
					knownvalue.StringRegexp(acceptance.Says("sent_bytes_per_second with the query"))),
				shows("hosts", "local", "age_seconds", knownvalue.NotNull()),
				shows("members", "job-worker-0", "p95.cpus_used", about(0.5)),
				shows("members", "job-worker-0", "memory_used_mib", exactly(3)),
				shows("members", "job-worker-0", "gpu_memory_used_mib", null),
				shows("members", "job-worker-0", "reason",
					knownvalue.StringExact(
						"no default query for member_gpu_memory_used_mib: set one in prometheus.queries",
					)),
				shows("members", "job-worker-1", "cpus_used", null),
				shows("members", "job-worker-1", "reason",
					knownvalue.StringRegexp(acceptance.Says("member_cpus_used with the query"))),
				shows("groups", "job", "reason",
					knownvalue.StringRegexp(acceptance.Says("member job-worker-1: Prometheus returns nothing"))),
				shows("gpus", "GPU-1", "max.utilisation_percent", exactly(40)),
				shows("gpus", "GPU-1", "memory_mib", whole(1000)),
				shows("gpus", "GPU-1", "host", knownvalue.StringExact("local")),
				shows("gpus", "GPU-1", "members", null),
			},
		},
		resource.TestStep{
			Config: config(`host_sent_bytes_per_second = "node_load1 * 8"`),
			ConfigStateChecks: []statecheck.StateCheck{
				shows("hosts", "local", "max.sent_bytes_per_second", exactly(16)),
			},
		},
		resource.TestStep{
			Config: config(`host_load = "node_load1{"`),
			ExpectError: acceptance.Says(
				`prometheus.queries["host_load"]: Prometheus rejected the query for host_load, node_load1{: bad_data`,
			),
		},
	)
}

// Credentials come from the provider block, are sent to that host only, and are in no state.
func TestAccUtilisationLogsIn(t *testing.T) {
	l := newLab(t)
	const secret = "verysecret"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != secret {
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	config := func(host string) string {
		login := fmt.Sprintf("provider \"trainyard\" {\n prometheus = { %q = { username = \"ops\", password = %q } }\n",
			host, secret)
		return strings.Replace(l.job(waiting("")), "provider \"trainyard\" {\n", login,
			1) + asks(fmt.Sprintf("source = \"prometheus\"\n prometheus = { url = %q }", server.URL))
	}
	elsewhere := strings.Replace(config("prometheus.example.com"), server.URL, "http://prometheus.example.com", 1)
	l.test(
		resource.TestStep{
			Config: elsewhere, ExpectError: acceptance.Says("without encryption; use https://, or set insecure = true"),
		},
		resource.TestStep{Config: config("prometheus.example.com"), ExpectError: acceptance.Says("client error: 401")},
		resource.TestStep{Config: config(host), Check: func(state *terraform.State) error {
			if strings.Contains(state.String(), secret) {
				return errors.New("the password is in the state")
			}
			return nil
		}},
	)
}

// Invalid sources and windows fail at plan time.
func TestAccUtilisationInvalid(t *testing.T) {
	l := newLab(t)
	data := func(attributes string, says ...string) invalid {
		return invalid{
			"data \"trainyard_utilisation\" \"bad\" {\n cluster = trainyard_cluster.lab\n " + attributes + "\n}", says,
		}
	}
	prometheus := func(attributes string) string {
		return "source = \"prometheus\"\n prometheus = { " + attributes + " }"
	}
	l.test(l.refused(theCluster, []invalid{
		data(`window = "1"`, `window: "1" is not a valid duration`),
		data(`window = "11m"`, `window: "11m" is not a valid window for source = "agent"; use 1s to 10m0s`),
		data(`window = "25h"`+"\n"+prometheus(`url = "http://prometheus"`),
			`window: "25h" is not a valid window for source = "prometheus"; use 1s to 24h0m0s`),
		data(`source = "dcgm"`, `source`, `"dcgm"`, `"agent"`, `"prometheus"`),
		data(`source = "prometheus"`, `prometheus: source = "prometheus" requires prometheus = { url`),
		data(`prometheus = { url = "http://prometheus" }`,
			`prometheus: source = "agent" does not use Prometheus; set source = "prometheus"`),
		data(prometheus(`url = "prometheus:9090"`),
			`prometheus.url: invalid Prometheus URL; use http:// or https:// with a host`),
		data(prometheus(`url = "http://ops:abc@prometheus"`),
			`prometheus.url: the URL must not contain user and password`),
		data(prometheus(`url = "http://prometheus", timeout = "0s"`),
			`prometheus.timeout: "0s" is not a valid timeout; use a duration above 0`),
		data(prometheus(`url = "http://prometheus", queries = { host_cpu = "1" }`),
			`prometheus.queries["host_cpu"]: unknown quantity "host_cpu"; use one of ["gpu_memory_mib"`),
	})...)
}
