//go:build linux

package systems_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Two of eight GPUs may be used, and each worker has its own. The application survives its master. The policy removes
// one of the workers while it runs, and nothing is computed again, thanks to what that worker has put into shared
// storage. Each worker has an address of its own, as Spark gives up what all workers at the address of one that leaves
// have. Afterwards, the policy and the history server are removed, and the script for Spark's resource discovery is
// changed, which shows in the plan, and restored.
func TestSystemSparkGPUs(t *testing.T) {
	control, cards := fakenvml.New(t), fakenvml.V100s("dgx", 8)
	control.Set(cards...)
	l := newSpark(t, func() string { return acctest.ProviderWithGPUs(t, control) })
	shared, goes := t.TempDir(), filepath.Join(t.TempDir(), "go")
	files, err := filepath.Abs(filepath.Join("testdata", "spark"))
	l.must(err)
	config := func(perApplication int) string {
		return fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "lab" {
  name  = "lab"
  hosts = { local = { address = "127.0.0.1" }, other = { address = "127.0.0.2" } }
}

resource "trainyard_gpu_pool" "two" {
  cluster = trainyard_cluster.lab
  name    = "two"
  devices = { local = [%q], other = [%q] }
}

module "spark" {
  source      = "./modules/spark"
  cluster     = trainyard_cluster.lab
  shuffle_dir = "%[3]s/shuffle"
  history     = { dir = "%[3]s/events", port = 17081, placement = { hosts = ["local"] } }
  autoscale   = { max = 2, workers_per_application = %[4]d, idle = "5s", interval = "1s" }
  %[5]s
}

module "devices" {
  source   = "./modules/spark/submit"
  spark    = module.spark
  name     = "devices"
  files    = %[6]q
  program  = "devices.py"
  workers  = 2
  env      = { GO = %[7]q }
  conf     = { "spark.ui.enabled" = "false" }
  driver   = { placement = { hosts = ["local"] } }
  wait_for = "running"
}
`, cards[4].UUID, cards[5].UUID, shared, perApplication, fmt.Sprintf(sparkPorts,
			fmt.Sprintf(`, recovery_dir = "%s/recovery", placement = { hosts = ["local"] }`, shared),
			`, gpus = { pool = trainyard_gpu_pool.two.name }, placement = { strategy = "one_per_host" }`,
		), files, goes)
	}
	l.Write("main.tf", config(2))
	l.Must("get")
	l.Must("apply", "-auto-approve")

	var event struct {
		Devices []string `json:"devices"`
		Sum     int      `json:"sum"`
		Made    int      `json:"made"`
	}
	acctest.Eventually(t, "an application that has shuffled",
		func() bool { return l.decodeEvent("devices", "shuffled", &event) })
	want := []string{cards[4].UUID + " 0", cards[5].UUID + " 0"}
	if !l.decodeEvent("devices", "devices", &event) || !slices.Equal(event.Devices, want) {
		t.Errorf("the executors have %q, want %q: each its own, which it counts as its first", event.Devices, want)
	}
	for _, worker := range l.await("two workers", withWorkers(2)).Workers {
		if addresses := worker.Resources["gpu"].Addresses; !slices.Equal(addresses, []string{"0"}) {
			t.Errorf("worker %s is registered with the GPUs %q, want one", worker.ID, addresses)
		}
	}

	l.kill("org.apache.spark.deploy.master.Master")
	l.await("a master that knows its workers and the application again", func(status sparkStatus) bool {
		return status.Status == "ALIVE" && len(status.Workers) == 2 && len(status.Active) == 1 &&
			status.Active[0].State == "RUNNING"
	})

	l.Write("main.tf", config(1))
	l.Must("apply", "-auto-approve")
	l.await("one worker", withWorkers(1))
	machine := labOf(t, l.Workspace)
	machine.awaitEnd("spark-worker-1")
	if !holdsData(t, filepath.Join(shared, "shuffle")) {
		t.Error("the worker that left has put nothing into the shared storage")
	}
	l.must(os.WriteFile(goes, nil, 0o600))
	acctest.Eventually(t, "the result", func() bool { return l.decodeEvent("devices", "summed", &event) })
	if want := 20000 * 19999 / 2; event.Sum != want {
		t.Errorf("the sum is %d, want %d", event.Sum, want)
	}
	if event.Made != 20000 {
		t.Errorf("%d numbers were made, want each of the 20000 once: shuffled data was lost with a worker", event.Made)
	}
	l.await("the end of the application", func(status sparkStatus) bool { return len(status.Active) == 0 })
	acctest.Eventually(t, "the application to empty the shared storage", func() bool {
		return !holdsData(t, filepath.Join(shared, "shuffle"))
	})
	l.ExpectNoChange("after the application")
	const history = "http://127.0.0.1:17081/api/v1/applications"
	expectHistory(l, history)

	l.must(engine.Delete[domain.AutoscalingPolicyDocument](t.Context(), machine.engine, "spark/worker"))
	machine.lose("spark-history-web-0")
	machine.alterContent("discover.sh")
	machine.expectMended(l.Workspace, "spark", "[create] trainyard_autoscaling_policy.this[0]",
		"[update] trainyard_files.gpus[0]", "[update] trainyard_group.history[0]")
	expectHistory(l, history)
	l.Must("destroy", "-auto-approve")
	l.ExpectNobody("after the destroy")
}

// holdsData reports whether a folder has files with shuffled data, at any depth.
func holdsData(t *testing.T, folder string) (found bool) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		found = found || strings.HasSuffix(path, ".data")
		if errors.Is(err, fs.ErrNotExist) { // Spark is emptying it
			return nil
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	return found
}

// expectHistory waits until the history server lists an application.
func expectHistory(l *sparkLab, address string) {
	l.Helper()
	acctest.Eventually(l, "the application in the history", func() bool {
		var applications []struct {
			Name string `json:"name"`
		}
		err := json.Unmarshal(l.get(address), &applications)
		return err == nil && len(applications) == 1 && applications[0].Name == "devices"
	})
}
