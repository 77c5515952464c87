//go:build linux

package swarm_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	prometheusImage = "trainyard/prometheus:1"
	// prometheusPort is Prometheus's port on its host.
	prometheusPort = 19090
)

// dashboards returns the expressions of the module's dashboards, by dashboard, with all variables matching everything.
func dashboards(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(acceptance.Modules, "monitoring/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dashboards: %v", err)
	}
	all := strings.NewReplacer("$__rate_interval", "1m", "$node", ".*", "$uuid", ".*", "$group", ".*", "$role", ".*")
	found := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				found[filepath.Base(file)] = append(found[filepath.Base(file)], all.Replace(target.Expr))
			}
		}
	}
	return found
}

// TestAccSwarmMonitoring: a real Prometheus, run by the module, finds the agents of all hosts, and shows what members
// use by name.
func TestAccSwarmMonitoring(t *testing.T) {
	acceptance.Test(t)
	acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, "monitoring"))
	w := newSwarmWorkspace(newSwarmLab(t, sharedBed(t), "monitored"))
	acctest.LoadPrometheus(t, w.bed, prometheusImage)
	acceptance.WithModules(w.Workspace)
	var hosts []string
	for _, node := range w.bed.Nodes {
		hosts = append(hosts, fmt.Sprintf("%s = { address = %q }", node.Name, node.Host()))
	}
	on := w.bed.Nodes[1]
	w.configure(w.cluster("hosts = { "+strings.Join(hosts, ", ")+" }"), w.group(fmt.Sprintf(`
  image = %q
  args  = ["wait"]
  roles = { worker = { replicas = 3, placement = { strategy = "one_per_host" } } }`, memberImage)), fmt.Sprintf(`
module "monitoring" {
  source = "./modules/monitoring"

  cluster         = trainyard_cluster.lab
  image           = %q
  published_port  = %d
  retention       = "1h"
  scrape_interval = "1s"
  scrape_configs  = [{ job_name = "itself", static_configs = [{ targets = ["localhost:9090"] }] }]
  placement       = { hosts = [%q] }
}

output "host" {
  value = "${module.monitoring.host} ${module.monitoring.endpoint}"
}`, prometheusImage, prometheusPort, on.Name))
	w.Must("get")
	w.Must("apply", "-auto-approve")
	if got, want := strings.TrimSpace(w.Must("output", "-raw", "host")), on.Name+
		" http://monitoring-prometheus-0:9090"; got != want {
		t.Errorf("Prometheus is at %q, want %q", got, want)
	}

	p := acceptance.Prometheus{
		TB: t, Client: &http.Client{Transport: &http.Transport{DialContext: w.bed.DialContext}},
		URL: fmt.Sprintf("http://%s:%d", on.Address, prometheusPort),
	}
	var targets map[string]string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the targets are %v", targets)
		}
	})
	acctest.Eventually(t, "three agents, the controller and itself to be scraped", func() bool {
		targets = p.Targets()
		up := 0
		for at, health := range targets {
			if health == "up" && (strings.HasSuffix(at, ":9465/metrics") || strings.HasSuffix(at, ":9466/metrics") ||
				at == "http://localhost:9090/metrics") {
				up++
			}
		}
		return up == 5 && len(targets) == up
	})

	// Each member's metrics name it and its host: agents report about containers, and the controller maps these to
	// members.
	const busy, named = "trainyard_member_cpus_busy", " * on (id) group_left (cluster, group, role, member) " +
		"max by (id, cluster, group, role, member) (trainyard_member_info{%s})"
	for i := range w.bed.Nodes {
		member := w.member("worker", i)
		of := fmt.Sprintf("cluster=%q, group=%q, role=\"worker\", member=%q", w.name, w.name, member)
		expression := fmt.Sprintf(busy+named, of)
		acctest.Eventually(t, "what is used by "+member, func() bool {
			found, err := p.Query(expression)
			w.must(err)
			return len(found) == 1 && found[0]["member"] == member && found[0]["node"] == w.hostOf(member)
		})
	}
	acctest.Eventually(t, "Prometheus to have used a CPU", func() bool {
		of := fmt.Sprintf("member=%q", domain.MemberName("monitoring", "prometheus", 0))
		found, err := p.Query(fmt.Sprintf("max_over_time("+busy+"[1m])"+named+" > 0", of))
		w.must(err)
		return len(found) == 1 && found[0]["node"] == on.Name
	})

	// The dashboards' queries are valid, and return data.
	for name, expressions := range dashboards(t) {
		for _, expression := range expressions {
			acctest.Eventually(t, name+" to show "+expression, func() bool {
				found, err := p.Query(expression)
				w.must(err)
				// there are neither GPUs nor policies
				return len(found) > 0 || name == "gpus.json" || name == "autoscaling.json"
			})
		}
	}
	acctest.Eventually(t, "the alert rules to be evaluated", func() bool {
		rules, err := p.Alerts()
		w.must(err)
		return len(rules) > 0 &&
			!slices.ContainsFunc(slices.Collect(maps.Values(rules)), func(health string) bool { return health != "ok" })
	})
	w.ExpectNoChange("with Prometheus at work")
}
