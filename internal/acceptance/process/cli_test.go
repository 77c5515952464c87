//go:build linux

package process_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// The tests in this file run the whole provider as users do, where a provider within the test process would not do.

// newWorkspace returns an empty workspace, and a lab in its state directory.
func newWorkspace(t *testing.T) (*acctest.Workspace, *lab) {
	t.Helper()
	acceptance.Test(t)
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	return w, &lab{T: t, files: statedir.Dir{Root: w.StateDir, Cluster: "lab"}, port: freePorts(t)}
}

// configure writes a configuration of these parts.
func (l *lab) configure(w *acctest.Workspace, parts ...string) {
	l.Helper()
	w.Write("main.tf", `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}`+l.config(parts...))
}

// check runs a check of this package outside of a test step.
func (l *lab) check(check resource.TestCheckFunc) {
	l.Helper()
	l.must(check(nil))
}

// A service keeps running after Terraform has ended, even if the state is lost: an import restores it.
func TestAccServiceOutlivesTerraformAndState(t *testing.T) {
	w, l := newWorkspace(t)
	configure := func(rate string) {
		l.configure(w, theCluster, group("job", `
  command    = [local.member, "wait"]
  roles      = { worker = { replicas = 2, port = local.port } }
  env        = { RATE = "`+rate+`" }
  completion = { when = "never" }`))
	}
	configure("0.1")
	w.Must("apply", "-auto-approve")
	l.check(l.changes("+job-worker-0", "+job-worker-1"))

	l.must(os.Remove(filepath.Join(w.Dir, "terraform.tfstate")))
	l.check(l.expectAlive(2))
	configure("0.2")
	acceptance.Refuses(w, acceptance.Says(`cluster "lab" already has a group "job" with another specification`,
		`import it: terraform import <address> lab/job`), "apply", "-auto-approve")

	configure("0.1")
	if output := w.Must("state", "list"); strings.Contains(output, acceptance.TheLab) {
		w.Must("state", "rm", acceptance.TheLab) // it was adopted, since it equals the configured one
	}
	w.Must("import", acceptance.TheLab, "lab")
	w.Must("import", acceptance.TheJob, "lab/job")
	w.ExpectNoChange("after the import")
	l.check(l.changes())
	l.check(l.expectAlive(2))
}

// Two groups of a cluster can be applied at the same time, from anywhere. One group can't: the second apply reports who
// holds it.
func TestAccTwoAppliesAtOnce(t *testing.T) {
	first, l := newWorkspace(t)
	second := first.Another()
	job := func(cluster, name, port, steps string) string {
		return strings.NewReplacer("CLUSTER", cluster, "NAME", name, "PORT", port, "STEPS", steps).Replace(`
resource "trainyard_group" "NAME" {
  cluster = CLUSTER
  name    = "NAME"
  command = [local.member, STEPS]
  roles   = { worker = { port = local.port + PORT, grace_period = "10m" } }
}`)
	}
	const here, elsewhere = "trainyard_cluster.lab", `{ name = "lab" }`
	l.configure(first, theCluster)
	first.Must("apply", "-auto-approve")

	// Two groups.
	l.configure(first, theCluster, job(here, "one", "0", `"ignore", "print:ready", "wait"`))
	l.configure(second, job(elsewhere, "two", "1", `"wait"`))
	inBackground := first.Start("apply", "-auto-approve")
	second.Must("apply", "-auto-approve")
	inBackground()
	l.check(l.changes("+one-worker-0", "+two-worker-0"))

	// One group: the first apply holds it until a member that ignores signals has ended.
	acctest.Eventually(t, "the member to ignore the stop signal",
		func() bool { return len(l.logs("one-worker-0")["one-worker-0"]) > 0 })
	l.configure(first, theCluster, job(here, "one", "0", `"wait"`))
	inBackground = first.Start("apply", "-auto-approve")
	acctest.Eventually(t, "the lock", func() bool {
		_, held, err := l.files.Holder(reconcile.GroupLock("one"))
		l.must(err)
		return held
	})
	l.configure(second, job(elsewhere, "one", "0", `"wait"`), job(elsewhere, "two", "1", `"wait"`))
	acceptance.Refuses(second,
		acceptance.Says(`Locked by another run`, `group one is locked by`, `apply of group one, since`), "apply",
		"-auto-approve")
	l.kill("one-worker-0")
	inBackground()
	l.check(l.changes("~one-worker-0"))

	// A cluster can't be destroyed while somebody has a group in it.
	l.configure(first)
	acceptance.Refuses(first, acceptance.Says(`Cluster "lab" still has group two`), "apply", "-auto-approve")
	l.configure(second)
	second.Must("apply", "-auto-approve")
}

// Sensitive values appear neither in the provider's logs nor in Terraform's output.
func TestAccNoSecretIsShown(t *testing.T) {
	w, l := newWorkspace(t)
	const secret = "hunter2-is-not-to-be-seen"
	l.configure(w, theCluster, `
variable "token" {
  type      = string
  sensitive = true
}`, group("job", `
  command = [local.member, "wait"]
  roles   = { worker = { port = local.port, env = { TOKEN = var.token } } }`))
	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"plan"}, {"destroy", "-auto-approve"}} {
		logs := filepath.Join(w.Dir, "provider.log")
		command := w.Command(context.Background(),
			[]string{"TF_VAR_token=" + secret, "TF_LOG_PROVIDER=TRACE", "TF_LOG_PATH=" + logs}, args...)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, output)
		}
		logged, err := os.ReadFile(logs)
		l.must(err)
		l.must(os.Remove(logs))
		if !bytes.Contains(logged, []byte("engine call")) || !bytes.Contains(logged, []byte("[TRACE]")) {
			t.Errorf("%s: the provider's log is not there:\n%s", args, logged)
		}
		for what, text := range map[string][]byte{"log": logged, "output": output} {
			for line := range bytes.Lines(text) {
				if bytes.Contains(line, []byte(secret)) {
					t.Errorf("%s: the secret is in the %s: %s", args, what, line)
				}
			}
		}
	}
	l.configure(w)
}
