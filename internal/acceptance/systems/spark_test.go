//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// sparkTrained is a driver's final line.
type sparkTrained struct {
	Workers   int     `json:"workers"`
	Seconds   float64 `json:"seconds"`
	Accuracy  float64 `json:"accuracy"`
	AUC       float64 `json:"auc"`
	RMSE      float64 `json:"rmse"`
	Deviation float64 `json:"deviation"`
}

// The example at the start of the README trains as it is, except for its ports. A killed worker comes back, a removed
// one shows in the plan and is restored, and none of that submits the application again.
func TestSystemSpark(t *testing.T) {
	l := newSpark(t, func() string { return acctest.Build(t, acctest.Provider) })
	l.Write("main.tf", sparkReadme(t)+`
data "trainyard_group" "train" {
  cluster    = trainyard_cluster.lab
  name       = "train"
  depends_on = [module.train]
}

output "train" { value = [data.trainyard_group.train.phase, one(values(data.trainyard_group.train.members)).exit_code] }
`)
	l.Must("get")
	begin := time.Now()
	l.Must("apply", "-auto-approve")
	applied := time.Since(begin)
	if got := strings.Join(strings.Fields(l.Must("output", "-json", "train")), ""); got != `["completed",0]` {
		t.Errorf("phase and exit code of the driver are %s, want completed and 0", got)
	}
	status := l.await("two workers", withWorkers(2))
	l.expectCompleted(status, "train", 2)
	var trained sparkTrained
	if !l.decodeEvent("train", "evaluated", &trained) || trained.Workers != 2 || trained.Accuracy < 0.88 ||
		trained.AUC < 0.92 {
		t.Errorf("the driver says %+v, want an accuracy above 0.88 and an AUC above 0.92, of two workers", trained)
	}
	t.Logf("classification: %+v, applied in %.1f s", trained, applied.Seconds())
	if metrics := l.get("http://127.0.0.1:17080/metrics/prometheus"); !strings.Contains(string(metrics),
		"aliveWorkers") {
		t.Errorf("the master's metrics do not include its workers: %.300s", metrics)
	}
	l.ExpectNoChange("after the training")

	victim := status.Workers[0]
	l.kill("org.apache.spark.deploy.worker.Worker", fmt.Sprint(victim.Port))
	l.await("another worker in the place of the one that was killed", func(status sparkStatus) bool {
		return len(status.Workers) == 2 &&
			!slices.ContainsFunc(status.Workers, func(w sparkWorker) bool { return w.ID == victim.ID })
	})
	l.ExpectNoChange("after a worker was killed")

	labOf(t, l.Workspace).lose("spark-worker-1")
	plan, err := l.Run("plan", "-detailed-exitcode")
	updates := acceptance.Says("module.spark.trainyard_group.this will be updated in-place", "1 to change")
	if err == nil || !updates.MatchString(plan) {
		t.Errorf("the plan does not show that a worker is missing, and nothing else: %v\n%s", err, plan)
	}
	l.Must("apply", "-auto-approve")
	status = l.await("two workers, after the apply", withWorkers(2))
	l.ExpectNoChange("after the drift was mended")
	if len(status.Completed)+len(status.Active) != 1 {
		t.Errorf("the application was submitted again: %+v", status)
	}

	l.Must("destroy", "-auto-approve")
	l.ExpectNobody("after the destroy")
}

// sparkReadme returns the example at the start of the README, with other ports.
func sparkReadme(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(acceptance.Modules, "spark", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```terraform\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no configuration")
	}
	config := string(block[1])
	for before, after := range map[string]string{
		"github.com/trainyard/terraform-provider-trainyard//": "./",
		"  cluster = trainyard_cluster.lab\n": "  cluster = trainyard_cluster.lab" + fmt.Sprintf(sparkPorts,
			"", ""),
	} {
		if !strings.Contains(config, before) {
			t.Fatalf("the configuration of the README has no %q", before)
		}
		config = strings.ReplaceAll(config, before, after)
	}
	return config
}

// An application that wants more workers than there are gets them before it starts. While it runs no worker is removed,
// even if the policy wants fewer by then; afterwards they are.
func TestSystemSparkPolicy(t *testing.T) {
	l := newSpark(t, func() string { return acctest.Build(t, acctest.Provider) })
	config := func(perApplication int) string {
		return fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

module "spark" {
  source    = "./modules/spark"
  cluster   = trainyard_cluster.lab
  autoscale = { max = 3, workers_per_application = %d, idle = "1s", interval = "1s" }
  %s
}

module "fares" {
  source   = "./modules/spark/submit"
  spark    = module.spark
  name     = "fares"
  program  = "regression.py"
  workers  = 2
  env      = { ROWS = "20000", ROUNDS = "20" }
  conf     = { "spark.ui.enabled" = "false" }
  wait_for = "running"
}
`, perApplication, fmt.Sprintf(sparkPorts, "", ""))
	}
	l.Write("main.tf", config(2))
	l.Must("get")
	l.Must("apply", "-auto-approve")
	l.await("an application on two workers", func(status sparkStatus) bool {
		return len(status.Active) == 1 && status.Active[0].Cores == 2
	})
	// It is stopped until the guard has kept its workers.
	const driver = "org.apache.spark.deploy.SparkSubmit"
	l.signal(syscall.SIGSTOP, driver)
	l.ExpectNoChange("while the application runs on more workers")
	l.Write("main.tf", config(1))
	l.Must("apply", "-auto-approve")
	kept := acceptance.Outcomes(autoscale.OutcomeUnchanged, 2, 2, "1 wanted, but the role is busy: activeapps.#")
	acctest.Eventually(l, "the guard to keep a worker", func() bool {
		return slices.ContainsFunc(acceptance.Recorded(t, l.engine()), kept)
	})
	l.signal(syscall.SIGCONT, driver)

	status := l.await("the end of the application, and one worker then", func(status sparkStatus) bool {
		return len(status.Completed) == 1 && len(status.Workers) == 1
	})
	fares := l.expectCompleted(status, "fares", 2)
	var trained sparkTrained
	if !l.decodeEvent("fares", "evaluated", &trained) || trained.Workers != 2 || trained.RMSE > trained.Deviation/4 {
		t.Errorf("the driver says %+v, want an error below a quarter of the deviation, of two workers", trained)
	}
	t.Logf("regression: %+v", trained)

	entries, ended := acceptance.Recorded(t, l.engine()), time.UnixMilli(fares.Started+fares.Duration)
	for _, entry := range entries {
		if entry.Outcome == autoscale.OutcomeDone && entry.To < entry.From && entry.At.Before(ended) {
			t.Errorf("a worker has left at %s, and the application ran until %s: %+v", entry.At, ended, entry)
		}
	}
	if t.Failed() {
		acceptance.Explain(t, acctest.Build(t, acctest.Provider), "spark/worker", "--endpoint", l.StateDir)
	}
	l.ExpectNoChange("after all")
}

// Two of eight GPUs may be used, and each worker has its own. The application survives its master; one of the workers
// leaves while it runs, and its result is the same, thanks to what that worker has put into shared storage.
func TestSystemSparkGPUs(t *testing.T) {
	control, cards := fakenvml.New(t), fakenvml.V100s("dgx", 8)
	control.Set(cards...)
	l := newSpark(t, func() string { return acctest.ProviderWithGPUs(t, control) })
	shared, goes := t.TempDir(), filepath.Join(t.TempDir(), "go")
	files, err := filepath.Abs(filepath.Join("testdata", "spark"))
	l.must(err)
	config := func(replicas int) string {
		return fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

resource "trainyard_gpu_pool" "two" {
  cluster = trainyard_cluster.lab
  name    = "two"
  devices = { local = %s }
}

module "spark" {
  source      = "./modules/spark"
  cluster     = trainyard_cluster.lab
  shuffle_dir = "%s/shuffle"
  history     = { dir = "%[2]s/events", port = 17081 }
  %s
}

module "devices" {
  source   = "./modules/spark/submit"
  spark    = module.spark
  name     = "devices"
  files    = %q
  program  = "devices.py"
  workers  = 2
  env      = { GO = %q }
  conf     = { "spark.ui.enabled" = "false" }
  wait_for = "running"
}
`, acceptance.List(cards[4].UUID, cards[5].UUID), shared, fmt.Sprintf(sparkPorts,
			fmt.Sprintf(`, recovery_dir = "%s/recovery"`, shared),
			fmt.Sprintf(`, replicas = %d, gpus = { pool = trainyard_gpu_pool.two.name }`, replicas),
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
	l.must(os.WriteFile(goes, nil, 0o600))
	acctest.Eventually(t, "the result", func() bool { return l.decodeEvent("devices", "summed", &event) })
	if want := 20000 * 19999 / 2; event.Sum != want {
		t.Errorf("the sum is %d, want %d", event.Sum, want)
	}
	t.Logf("of 20000 numbers, %d were made anew, as both workers have one host", event.Made-20000)
	l.await("the end of the application", func(status sparkStatus) bool { return len(status.Active) == 0 })
	l.ExpectNoChange("after the application")
	expectHistory(l, "http://127.0.0.1:17081/api/v1/applications")
	l.Must("destroy", "-auto-approve")
	l.ExpectNobody("after the destroy")
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
