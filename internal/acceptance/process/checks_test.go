//go:build linux

package process_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestAccChecks applies the example "checks" to a group with a GPU that is idle, works, and loses its member: the first
// is a warning, the last an error unless the group has pending changes.
func TestAccChecks(t *testing.T) {
	w := newWard(t, fakenvml.V100s("dgx", 1)...)
	w.files.Cluster = "checked-lab"
	w.must(acceptance.Copy(w.terraform.Dir, filepath.Join(acceptance.Examples, "checks")))
	w.terraform.Write("pool.tf", acceptance.Pool("p", w.named(0)))
	// An override adds what the example leaves out.
	train := func(run string) {
		w.terraform.Write("training_override.tf", `
resource "trainyard_group" "training" {
  env   = { RUN = "`+run+`" }
  roles = { worker = { replicas = 1, gpus = { pool = trainyard_gpu_pool.p.name }, restart = { condition = "never" } } }
}
`)
	}
	idle := acceptance.Says("Warning: Check block assertion failed",
		"GPUs of members are idle: "+w.devices[0].UUID+" of host local")
	warns := func(args ...string) bool {
		t.Helper()
		// a warning does not fail it
		output := w.terraform.Must(append([]string{"plan", "-detailed-exitcode"}, args...)...)
		return idle.MatchString(acceptance.Unframed.ReplaceAllString(output, ""))
	}
	const short = "-var=window=5s"

	train("1")
	w.terraform.Must("apply", "-auto-approve")
	w.check(w.changes("+training-worker-0"))
	acctest.Eventually(t, "a warning of the idle GPU", func() bool { return warns(short) })
	if warns() {
		t.Error("a GPU is idle for ten minutes that a member has had for less")
	}
	w.change(0, func(d *fakenvml.Device) { d.Utilisation = 80 })
	acctest.Eventually(t, "no warning of the GPU that works", func() bool { return !warns(short) })

	w.kill("training-worker-0")
	acctest.Eventually(t, "the failure of training-worker-0",
		func() bool { return w.state("training-worker-0").State == domain.StateFailed })
	acceptance.Refuses(w.terraform,
		acceptance.Says("Resource postcondition failed", "The group is degraded: failed: training-worker-0"), "plan",
		"-detailed-exitcode")
	train("2")
	if output := w.expectDrift("0 to add, 1 to change"); strings.Contains(output, "The group is") {
		t.Errorf("a group with changes to come is judged before them:\n%s", output)
	}
	w.terraform.Must("apply", "-auto-approve")
	w.check(w.changes("~training-worker-0"))
}
