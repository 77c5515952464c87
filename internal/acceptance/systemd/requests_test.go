//go:build linux

package systemd_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// hostCall matches a log line about a request to a host, and the others its fields, which come in any order.
var (
	hostCall  = regexp.MustCompile(`host call: .*`)
	callField = regexp.MustCompile(`\bcall=(\S+)`)
	hostField = regexp.MustCompile(`\bhost="([^"]*)"`)
)

// A plan without changes sends each host one request, whatever the number of resources.
func TestAccPlanAsksOnce(t *testing.T) {
	acceptance.Test(t)
	control := fakenvml.New(t)
	control.Set(fakenvml.V100s("dgx", 2)...)
	l := openLab(t, sharedBed(t), acctest.ProviderWithGPUs(t, control), 0, 1, 2)
	w := acctest.NewWorkspace(t, l.provider)
	w.Write("main.tf", required+l.config(l.cluster(l.hosts...), waiting(3), `
resource "trainyard_group" "other" {
  cluster = trainyard_cluster.lab
  name    = "other"
  command = ["${trainyard_files.member.path}/member", "wait"]
  framework = "spark"
  roles   = {
    master = { port = local.port + 9, replicas = 1 }
    worker = { resources = { cpus = 0.1 } }
  }
}
resource "trainyard_files" "member" {
  cluster  = trainyard_cluster.lab
  name     = "member"
  source   = "`+filepath.Dir(acctest.Build(t, acctest.Member))+`"
  excludes = ["/*", "!/`+filepath.Base(acctest.Build(t, acctest.Member))+`"]
}
resource "trainyard_gpu_pool" "all" {
  cluster     = trainyard_cluster.lab
  name        = "all"
  devices     = { host1 = ["`+fakenvml.V100s("dgx", 2)[0].UUID+`"] }
}
resource "trainyard_sweep" "done" {
  cluster  = trainyard_cluster.lab
  name     = "done"
  command  = [local.member, "print:done"]
  wait_for = "completed"
  runs     = { a = {}, b = {} }
}
resource "trainyard_autoscaling_policy" "other" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.other.name
  role    = "worker"
  min     = 1
  max     = 4
  metrics = { cpu = { source = { agent = { measure = "cpu_percent" } }, window = "1m", algorithm = { target = { value = 60 } } } }
}
`))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the apply")

	logs := filepath.Join(w.Dir, "provider.log")
	output, err := w.Command(t.Context(), []string{"TF_LOG_PROVIDER=DEBUG", "TF_LOG_PATH=" + logs},
		"plan").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	logged, err := os.ReadFile(logs)
	l.must(err)
	asked := map[string][]string{}
	for _, line := range hostCall.FindAllString(string(logged), -1) {
		call, host := callField.FindStringSubmatch(line), hostField.FindStringSubmatch(line)
		if call == nil || host == nil {
			t.Fatalf("the log has %q", line)
		}
		asked[host[1]] = append(asked[host[1]], call[1])
	}
	if len(asked) != len(l.hosts) {
		t.Errorf("%d of %d hosts were asked:\n%s", len(asked), len(l.hosts), logged)
	}
	for _, host := range slices.Sorted(maps.Keys(asked)) {
		if calls := asked[host]; len(calls) > 1 {
			t.Errorf("%s was asked %d times: %s", host, len(calls), strings.Join(calls, ", "))
		}
	}
	w.Must("destroy", "-auto-approve")
}
