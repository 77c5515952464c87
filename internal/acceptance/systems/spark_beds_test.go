//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
)

// An application trains on bare hosts as on this machine.
func TestSystemSparkBareHosts(t *testing.T) { trainSpark(t, onHosts) }

// An application trains on a Swarm as on this machine, with the module's own program in an image that doesn't contain
// it.
func TestSystemSparkSwarm(t *testing.T) { trainSpark(t, onSwarm) }

// trainSpark trains with two workers on different machines. One of these loses its power in the middle, and when it is
// back the gang trains anew, in the same application or in another one. All members have a secret, which is shown
// nowhere. A worker that is lost shows in the plan and is restored, and the application is not submitted again.
func trainSpark(t *testing.T, start func(*testing.T, pythonenv.Environment, int) *site) {
	t.Helper()
	l := newSparkBed(t, start)
	l.configureTraining(t)
	l.Must("plan", "-out="+savedPlan)
	begin := time.Now()
	finish := l.Start("apply", savedPlan)
	l.interrupt(t)
	finish()
	applied := time.Since(begin)
	l.Must("apply", "-refresh-only", "-auto-approve") // workers may have moved during the apply
	l.awaitWorkers(2)
	t.Logf("%s, applied in %.1f s", l.expectTrained(), applied.Seconds())
	l.ExpectNoChange("after the training")
	l.expectSecret()

	if err := l.site.lose("spark-worker", 2); err != nil {
		t.Fatal(err)
	}
	l.awaitWorkers(1)
	plan, err := l.Run("plan", "-detailed-exitcode")
	updates := acceptance.Says("module.spark.trainyard_group.this will be updated in-place",
		"0 to add, 1 to change, 0 to destroy")
	if err == nil || !updates.MatchString(plan) {
		t.Errorf("the plan does not show that a worker is missing, and nothing else: %v\n%s", err, plan)
	}
	l.Must("apply", "-auto-approve")
	l.awaitWorkers(2)
	l.ExpectNoChange("after the drift was mended")

	l.Must("destroy", "-auto-approve")
	l.site.expectNothing(t)
}

// interrupt cuts the power of the second machine, which has one of the two workers, once the application begins to
// train, and boots it again: on a Swarm, too, as the other machine takes no second worker.
func (l *sparkBed) interrupt(t *testing.T) {
	t.Helper()
	says := func(event string) bool {
		log, err := l.site.log("fares-driver-0")
		return err == nil && strings.Contains(log, fmt.Sprintf(`{"event": %q,`, event))
	}
	acctest.Eventually(t, "the application to begin its training", func() bool { return says("prepared") })
	if err := l.site.killHost(1); err != nil {
		t.Fatal(err)
	}
	if says("trained") {
		t.Errorf("%s has lost its power after the training, not in the middle", l.site.hosts[1])
	}
	if err := l.site.bootHost(1); err != nil {
		t.Fatal(err)
	}
}

// sparkSecret is a secret of a Spark, or of an application, which lets in only those who have the same. Spark reads it
// in containers with the variable in sparkSecretFolder.
const (
	sparkSecret = `
  secrets       = { "spark-defaults.conf" = { version = "1" } }
  secret_values = { "spark-defaults.conf" = "spark.authenticate true\nspark.authenticate.secret ${var.token}\n" }
`
	sparkSecretFolder = `, SPARK_CONF_DIR = "/run/secrets"`
)

// expectSecret fails unless the master and a worker have the secret, and it appears nowhere else: not in what Terraform
// shows, and not in logs.
func (l *sparkBed) expectSecret() {
	l.Helper()
	worker := "spark-worker"
	if l.site.image == "" {
		worker = "spark-worker-0"
	}
	for member, class := range map[string]string{"spark-master-0": "master.Master", worker: "worker.Worker"} {
		folder := "/run/secrets"
		if l.site.image == "" {
			// Other workers on the host, if any, have the same.
			folder = fmt.Sprintf(`"$(tr '\0' '\n' </proc/$(pgrep -f -o deploy.%s)/environ | `+
				`sed -n s/^CREDENTIALS_DIRECTORY=//p)"`, strings.ReplaceAll(class, ".", "[.]"))
		}
		content, err := l.site.shell(member, "cat "+folder+"/spark-defaults.conf")
		if want := "spark.authenticate true\nspark.authenticate.secret " + canary; err != nil ||
			strings.TrimSpace(content) != want {
			l.Errorf("%s has the secret %q, want %q: %v", member, content, want, err)
		}
	}
	// On a Swarm, all workers together have the role's name.
	l.site.expectHidden(l.Workspace, "spark-master-0", "spark-worker", "spark-worker-0", "spark-worker-1",
		"fares-driver-0")
}

// sparkBed is a Spark on several machines, and an application.
type sparkBed struct {
	*acctest.Workspace
	site *site
	// bin is the folder of Spark's programs, java the home of its Java, and options are those of each JVM.
	bin, java, options string
	// submitted is how many applications the master has seen; 0 if nobody has looked.
	submitted int
}

// sparkOutputs are the outputs of its configuration.
type sparkOutputs struct {
	Web     struct{ Value string }
	Workers struct{ Value map[string]string }
	Log     struct{ Value []string }
}

// newSparkBed returns two machines with Spark and its Java.
func newSparkBed(t *testing.T, start func(*testing.T, pythonenv.Environment, int) *site) *sparkBed {
	t.Helper()
	e := newEnvironment(t, "spark")
	java, folders := javaOf(t)
	e.Folders = append(e.Folders, folders...)
	l := &sparkBed{
		Workspace: acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider)),
		bin:       filepath.Dir(e.Python), java: filepath.Dir(filepath.Dir(java)),
		options: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
	}
	acceptance.WithModules(l.Workspace)
	l.site = start(t, e, 2)
	if l.site.image != "" {
		l.options += " -Djava.io.tmpdir=/" // Spark loads libraries from there, which /tmp doesn't allow here
	}
	return l
}

// members returns the attributes of the module that determine what its members run from, with more mounts.
func (l *sparkBed) members(mounts ...string) string {
	if l.site.image != "" { // Spark looks up its user's name
		mounts = append(mounts, `{ source = "/etc/passwd", target = "/etc/passwd", read_only = true }`)
	}
	return l.site.members(mounts...)
}

// configureTraining writes the configuration with an application that trains.
func (l *sparkBed) configureTraining(t *testing.T) {
	t.Helper()
	folder := ""
	if l.site.image != "" {
		folder = sparkSecretFolder
	}
	configured(l.Workspace, l.site.cluster, fmt.Sprintf(`
module "spark" {
  source  = "./modules/spark"
  cluster = trainyard_cluster.lab
  bin     = %[1]q
  env     = { JAVA_HOME = %[2]q, JDK_JAVA_OPTIONS = %[3]q%[6]s }
  master = {
    daemon_memory_mib = 256
    resources         = { limits = { cpus = 0.5 } }
    placement         = { hosts = [%[4]q] }
    conf              = { "spark.worker.timeout" = "20" } # seconds until a worker that is silent counts as lost
  }
  worker = {
    memory_mib        = 512
    daemon_memory_mib = 256
    conf              = { "spark.worker.timeout" = "20" }
    placement         = { strategy = "one_per_host" }
    resources         = { limits = { cpus = 0.8 } }
  }
%[5]s%[7]s}

module "fares" {
  source  = "./modules/spark/submit"
  spark   = module.spark
  name    = "fares"
  program = "regression.py"
  retries = 2
  env     = { ROWS = "20000", ROUNDS = "20" }
  conf    = { "spark.ui.enabled" = "false" }
  driver  = { memory_mib = 512, resources = { limits = { cpus = 0.8 } }, placement = { hosts = [%[4]q] } }
%[7]s}

data "trainyard_group" "spark" {
  cluster    = trainyard_cluster.lab
  name       = module.spark.name
  depends_on = [module.spark]
}

data "trainyard_logs" "fares" {
  cluster    = trainyard_cluster.lab
  member     = module.fares.driver
  depends_on = [module.fares]
}

output "web" { value = module.spark.web }
output "workers" {
  value = { for name, member in data.trainyard_group.spark.members : name => member.host if member.role == "worker" }
}
output "log" { value = data.trainyard_logs.fares.lines }
`, l.bin, l.java, l.options, l.site.hosts[0], l.members(), folder, sparkSecret), l.site.withSecret(t, l.Workspace))
}

func (l *sparkBed) outputs() (outputs sparkOutputs) {
	l.Helper()
	if err := json.Unmarshal([]byte(l.Must("output", "-json")), &outputs); err != nil {
		l.Fatal(err)
	}
	return outputs
}

// expectTrained fails unless the workers are on two machines, and the driver reports a good model. It returns both.
func (l *sparkBed) expectTrained() string {
	l.Helper()
	outputs := l.outputs()
	hosts := slices.Sorted(maps.Values(outputs.Workers.Value))
	if !slices.Equal(hosts, slices.Sorted(slices.Values(l.site.hosts))) {
		l.Errorf("the workers are on %v, want one on each of %v", outputs.Workers.Value, l.site.hosts)
	}
	var trained sparkTrained
	for _, line := range outputs.Log.Value {
		if strings.HasPrefix(line, `{"event": "evaluated",`) {
			if err := json.Unmarshal([]byte(line), &trained); err != nil {
				l.Fatal(err)
			}
		}
	}
	if trained.Workers != 2 || trained.RMSE <= 0 || trained.RMSE > trained.Deviation/4 {
		l.Errorf("the driver says %+v, want an error below a quarter of the deviation, of two workers", trained)
	}
	return fmt.Sprintf("%+v on %v", trained, outputs.Workers.Value)
}

// awaitWorkers waits until the master knows this many workers. It fails unless the newest application that the master
// knows has finished, on two cores, none is active, and there are no more of them than at the last look. An earlier one
// may say FINISHED, too: its driver has ended it in order, after a worker was lost.
func (l *sparkBed) awaitWorkers(workers int) {
	l.Helper()
	web := l.outputs().Web.Value + "/json/"
	var status sparkStatus
	acctest.Eventually(l, fmt.Sprintf("%d workers", workers), func() bool {
		status = sparkStatusOf([]byte(l.site.get("spark-master-0", web)))
		return len(status.Workers) == workers
	})
	var newest sparkApplication
	for _, application := range status.Completed {
		if application.Started >= newest.Started {
			newest = application
		}
	}
	if l.submitted == 0 {
		l.submitted = len(status.Completed)
		l.Logf("the application was submitted %d times", l.submitted)
	}
	finished := newest.State == "FINISHED" && newest.Cores == 2
	if len(status.Active) > 0 || !finished || len(status.Completed) != l.submitted {
		l.Errorf("the master reports %+v, want %d applications, of which the newest has finished on two cores", status,
			l.submitted)
	}
}
