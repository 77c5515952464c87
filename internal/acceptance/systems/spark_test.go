//go:build linux

package systems_test

import (
	"fmt"
	"net"
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
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
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

// The example at the start of the README trains as it is, except for its ports; its web UIs listen only at the members'
// address. A killed worker comes back, and leaves alone what isn't its own. A change of the triggers submits the
// application again. Members that are removed, and specifications and files that are changed, show in the plan and are
// restored, which submits nothing; nor does parking the cluster, which warns.
func TestSystemSpark(t *testing.T) {
	t.Parallel()
	l := newSpark(t, func() string { return acctest.Build(t, acctest.Provider) })
	config := sparkReadme(t) + `
data "trainyard_group" "train" {
  cluster    = trainyard_cluster.lab
  name       = "train"
  depends_on = [module.train]
}

output "train" { value = [data.trainyard_group.train.phase, one(values(data.trainyard_group.train.members)).exit_code] }
`
	l.Write("main.tf", config)
	l.Must("get")
	begin := time.Now()
	l.Must("apply", "-auto-approve")
	applied := time.Since(begin)
	if got := strings.Join(strings.Fields(l.Must("output", "-json", "train")), ""); got != `["completed",0]` {
		t.Errorf("phase and exit code of the driver are %s, want completed and 0", got)
	}
	status := l.await("two workers, and the end of the application", func(status sparkStatus) bool {
		return withWorkers(2)(status) && len(status.Completed) == 1
	})
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
	for _, port := range []int{17080, 17090} {
		if l.get(fmt.Sprintf("http://127.0.0.1:%d/json/", port)) == nil {
			t.Errorf("there is no web UI at port %d of the members' address", port)
		}
		if l.get(fmt.Sprintf("http://127.0.0.2:%d/json/", port)) != nil {
			t.Errorf("the web UI at port %d also listens at another address of this machine", port)
		}
	}
	l.ExpectNoChange("after the training")

	machine := labOf(t, l.Workspace)
	foreign := machine.putForeignFiles("spark-worker-0", "spark-worker-1")
	victim := status.Workers[0]
	l.kill("org.apache.spark.deploy.worker.Worker", fmt.Sprint(victim.Port))
	l.await("another worker in the place of the one that was killed", func(status sparkStatus) bool {
		return len(status.Workers) == 2 &&
			!slices.ContainsFunc(status.Workers, func(w sparkWorker) bool { return w.ID == victim.ID })
	})
	for _, file := range foreign {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a worker removes what isn't its own: %v", err)
		}
		machine.must(os.RemoveAll(filepath.Dir(file))) // what is not Trainyard's stays after a destroy, too
	}
	l.ExpectNoChange("after a worker was killed")

	const submit = "  spark  = module.spark\n"
	if !strings.Contains(config, submit) {
		t.Fatalf("the configuration of the README has no %q", submit)
	}
	config = strings.Replace(config, submit, submit+"  triggers = { commit = \"2\" }\n", 1)
	l.Write("main.tf", config)
	l.Must("apply", "-auto-approve")
	status = l.await("a second application that has completed", func(status sparkStatus) bool {
		return len(status.Active) == 0 && len(status.Completed) == 2
	})
	for _, application := range status.Completed {
		if application.Name != "train" || application.State != "FINISHED" || application.Cores != 2 {
			t.Errorf("the applications are %+v, want two of train, FINISHED on 2 cores", status.Completed)
		}
	}
	l.ExpectNoChange("after the triggers have changed")

	driver := machine.state("train-driver-0").StartedAt
	machine.lose("spark-worker-1")
	machine.lose("spark-master-0")
	machine.alterGroup("spark", func(spec *domain.Group) { spec.Roles["worker"].Env["SPARK_DAEMON_MEMORY"] = "1g" })
	machine.alterGroup("train", func(spec *domain.Group) { spec.Priority++ })
	machine.alterContent("training.py")
	l.Must("plan", "-refresh-only")
	machine.expectMended(l.Workspace, "spark", "[update] module.train.trainyard_files.this[0]",
		"[update] module.train.trainyard_group.this", "[update] trainyard_group.this")
	l.await("two workers, after the apply", withWorkers(2))
	expectSubmittedOnce := func(when string) {
		t.Helper()
		again := machine.state("train-driver-0").StartedAt
		if driver == nil || again == nil || !again.Equal(*driver) {
			t.Errorf("the driver has started at %v, and %s at %v: it was submitted again", driver, when, again)
		}
	}
	expectSubmittedOnce("after its master was restored")

	const worker = "  worker  = { "
	if strings.Count(config, worker) != 1 {
		t.Fatalf("the configuration has not one %q:\n%s", worker, config)
	}
	l.Write("main.tf", strings.Replace(config, worker, worker+"replicas = 0, ", 1))
	acceptance.ExpectSaid(t, l.Must("apply", "-auto-approve"), "The Spark cluster has no workers")
	l.await("no workers", func(status sparkStatus) bool { return status.Status == "ALIVE" && len(status.Workers) == 0 })
	expectSubmittedOnce("on a parked cluster")
	l.ExpectNoChange("while the cluster is parked")

	l.Must("destroy", "-auto-approve")
	l.ExpectNobody("after the destroy")
}

// putForeignFiles puts files that aren't Spark's into folders of members' working directories, and returns their
// paths.
func (l *lab) putForeignFiles(members ...string) (files []string) {
	l.Helper()
	for _, member := range members {
		for _, folder := range []string{"work", "scratch"} {
			file := filepath.Join(l.files.WorkDir(member), folder, "data.csv")
			l.must(os.MkdirAll(filepath.Dir(file), 0o700))
			l.must(os.WriteFile(file, nil, 0o600))
			files = append(files, file)
		}
	}
	return files
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

// An application that wants more workers than there are, and fewer than others, gets them before it starts. While it
// runs no worker is removed, even if the policy wants fewer by then; afterwards they are. All ports that Spark's own
// limit allows for the web UIs of workers are taken, as by other workers on the host.
func TestSystemSparkPolicy(t *testing.T) {
	l := newSpark(t, func() string { return acctest.Build(t, acctest.Provider) })
	for port := range 17 {
		taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", 17090+port))
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
	}
	config := func(workers int) string {
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
  autoscale = { max = 3, workers_per_application = 3, applications = { fares = %d }, idle = "1s", interval = "1s" }
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
`, workers, fmt.Sprintf(sparkPorts, "", ""))
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
