//go:build linux

package systemd_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

const prometheusImage = "trainyard/prometheus:1"

// A real Prometheus, run by the module on a bare host, scrapes the agents of all hosts and the controller, and
// evaluates the module's alerts.
func TestAccMonitoring(t *testing.T) {
	acceptance.Test(t)
	acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, "monitoring"))
	l := openLab(t, dockerBed(t), acctest.Build(t, acctest.Provider), 0, 1, 2)
	w := acctest.NewWorkspace(t, l.provider)
	acceptance.WithModules(w)
	on, port := l.hosts[1], l.port+1
	acctest.LoadPrometheus(t, on, prometheusImage) // tests beside this one stop other hosts' Engines
	w.Write("main.tf", required+l.config(l.answering(l.cluster(l.hosts...)), waiting(3), fmt.Sprintf(`
module "monitoring" {
  source          = "./modules/monitoring"
  cluster         = trainyard_cluster.lab
  image           = %q
  port            = %d
  retention       = "1h"
  scrape_interval = "1s"
  placement       = { hosts = [%q] }
}

output "endpoint" {
  value = "${module.monitoring.host} ${module.monitoring.endpoint}"
}`, prometheusImage, port, on.Name)))
	w.Must("get")
	w.Must("apply", "-auto-approve")
	url := fmt.Sprintf("http://%s:%d", on.Address, port)
	if got, want := strings.TrimSpace(w.Must("output", "-raw", "endpoint")), on.Name+" "+url; got != want {
		t.Errorf("Prometheus is at %q, want %q", got, want)
	}

	p := acceptance.Prometheus{
		TB: t, Client: &http.Client{Transport: &http.Transport{DialContext: l.bed.DialContext}}, URL: url,
	}
	want := map[string]string{fmt.Sprintf("http://%s/metrics", metricsAt(l.hosts[0], l.metricsPort()+1)): "up"}
	for _, host := range l.hosts {
		want[fmt.Sprintf("http://%s/metrics", metricsAt(host, l.metricsPort()))] = "up"
	}
	var targets map[string]string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the targets are %v", targets)
		}
	})
	acctest.Eventually(t, "three agents and the controller to be scraped", func() bool {
		targets = p.Targets()
		return maps.Equal(targets, want)
	})
	acctest.Eventually(t, "the usage of members by name", func() bool {
		found, err := p.Query(fmt.Sprintf(
			"trainyard_member_memory_bytes * on (id) group_left (member) max by (id, member) (trainyard_member_info{cluster=%q, group=\"job\"})",
			l.name,
		))
		l.must(err)
		return len(found) == len(l.hosts)
	})
	acctest.Eventually(t, "the alert rules to be evaluated", func() bool {
		rules, err := p.Alerts()
		l.must(err)
		return len(rules) > 0 &&
			!slices.ContainsFunc(slices.Collect(maps.Values(rules)), func(health string) bool { return health != "ok" })
	})
	w.ExpectNoChange("with Prometheus at work")
}
