//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// A worker in a container leaves while an application holds shuffled data on it. Nothing is computed again, thanks to
// what that worker has put into shared storage.
func TestSystemSparkLeavingSwarm(t *testing.T) {
	l := newSparkBed(t, onSwarm)
	shared := t.TempDir()
	folder, err := filepath.Abs(filepath.Join("testdata", "spark"))
	if err != nil {
		t.Fatal(err)
	}
	members := l.members(fmt.Sprintf(`{ source = %q, target = "/shared" }`, shared),
		fmt.Sprintf(`{ source = %q, target = "/programs", read_only = true }`, folder))
	config := func(workers int) string {
		return fmt.Sprintf(`
module "spark" {
  source      = "./modules/spark"
  cluster     = trainyard_cluster.lab
  bin         = %[1]q
  env         = { JAVA_HOME = %[2]q, JDK_JAVA_OPTIONS = %[3]q }
  shuffle_dir = "/shared/shuffle"
  master      = { daemon_memory_mib = 256, placement = { hosts = [%[4]q] } }
  worker = {
    replicas          = %[6]d
    memory_mib        = 512
    daemon_memory_mib = 256
    placement         = { strategy = "one_per_host" }
  }
%[5]s}

module "devices" {
  source   = "./modules/spark/submit"
  spark    = module.spark
  name     = "devices"
  program  = "/programs/devices.py"
  env      = { GO = "/shared/go" }
  conf     = { "spark.ui.enabled" = "false" }
  driver   = { memory_mib = 512, placement = { hosts = [%[4]q] } }
  wait_for = "running"
}
`, l.bin, l.java, l.options, l.site.hosts[0], members, workers)
	}
	var event struct {
		Sum  int `json:"sum"`
		Made int `json:"made"`
	}
	says := func(name string) bool {
		log, err := l.site.log("devices-driver-0")
		for line := range strings.Lines(log) {
			if err == nil && strings.HasPrefix(line, fmt.Sprintf(`{"event": %q,`, name)) {
				return json.Unmarshal([]byte(line), &event) == nil
			}
		}
		return false
	}
	configured(l.Workspace, l.site.cluster, config(2))
	l.Must("apply", "-auto-approve")
	acctest.Eventually(t, "an application that has shuffled", func() bool { return says("shuffled") })
	configured(l.Workspace, l.site.cluster, config(1))
	l.Must("apply", "-auto-approve")
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "the result", func() bool { return says("summed") })
	if want := 20000 * 19999 / 2; event.Sum != want || event.Made != 20000 {
		t.Errorf("the sum is %d of %d numbers, want %d of 20000: shuffled data was lost with a worker", event.Sum,
			event.Made, want)
	}
	l.Must("destroy", "-auto-approve")
	l.site.expectNothing(t)
}
