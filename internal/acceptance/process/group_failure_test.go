//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// failing are the attributes of a group whose worker ends with exit code 3.
const failing = `
  wait_for = "completed"
  roles = {
    ps     = { replicas = 1, port = local.port, command = [local.member, "wait"] }
    worker = {
      replicas   = 1
      port       = local.port + 10
      command    = [local.member, "print:no data here", "exit:3"]
      exit_codes = { final = ["3"] }
    }
  }
  completion = { when = "all", roles = ["worker"] }`

// mended are those of the same group without the failure.
const mended = `
  wait_for = "completed"
  roles = {
    ps     = { replicas = 1, port = local.port, command = [local.member, "wait"] }
    worker = { replicas = 1, port = local.port + 10, command = [local.member, "exit:0"] }
  }
  completion = { when = "all", roles = ["worker"] }`

// memberFailed is what an apply says about the failing worker.
var memberFailed = acceptance.Says(`member job-worker-0 on host local: exit code 3`, `Its last log lines:`,
	`no data here`)

// keepsEvidence fails unless the logs of the failing worker still exist.
func (l *lab) keepsEvidence() {
	l.Helper()
	if got := l.logs("job-worker-0")["job-worker-0"]; !slices.Contains(got, "no data here") {
		l.Errorf("the log of the member that failed holds %q", got)
	}
}

// A failed create says why and keeps the evidence. The next apply succeeds.
func TestAccGroupCreateFails(t *testing.T) {
	l := newLab(t)
	l.test(
		resource.TestStep{Config: l.job(failing), ExpectError: memberFailed},
		resource.TestStep{
			PreConfig: l.keepsEvidence,
			Config:    l.job(mended),
			// Terraform replaces what it could not create.
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionDestroyBeforeCreate),
			Check:            resource.TestCheckResourceAttr(acceptance.TheJob, "members.%", "2"),
		},
	)
}

// So does a failed update.
func TestAccGroupUpdateFails(t *testing.T) {
	l := newLab(t)
	l.test(
		resource.TestStep{Config: l.job(mended), Check: l.changes("+job-ps-0", "+job-worker-0")},
		resource.TestStep{Config: l.job(failing), ExpectError: memberFailed},
		resource.TestStep{
			PreConfig:        l.keepsEvidence,
			Config:           l.job(mended),
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check:            l.changes("~job-ps-0", "~job-worker-0"),
		},
	)
}

// An apply that waits for the members to run fails if one can't be started, and the next one succeeds.
func TestAccGroupMemberDoesNotStart(t *testing.T) {
	l := newLab(t)
	// Each member has a program of its own, and the second one's is missing. Plans only check a role's first one.
	programs := t.TempDir()
	install := func(program string) {
		l.must(os.Symlink(acctest.Build(l, acctest.Member), filepath.Join(programs, program)))
	}
	install("worker-0")
	config := l.job(`
  command  = ["` + programs + `/worker-{{ .Index }}", "wait"]
  roles    = { worker = { replicas = 2, port = local.port } }
  timeouts = { create = "10m" }`)
	l.test(
		resource.TestStep{
			Config: config,
			ExpectError: acceptance.Says(`Member failed`, `member job-worker-1 on host local: it can't be started:`,
				`worker-1" is not an executable file`, `The group was left as it is`),
		},
		resource.TestStep{
			PreConfig: func() {
				if code := l.state("job-worker-1").ExitCode; code == nil || *code != 127 {
					t.Errorf("the exit code of the member that could not be started is %v, want 127", code)
				}
				install("worker-1")
			},
			Config: config,
			Check:  resource.ComposeTestCheckFunc(l.changes("+job-worker-0", "+job-worker-1"), l.expectAlive(2)),
		},
	)
}

// A member that keeps failing has failed once its attempts are used up.
func TestAccGroupMemberExhaustsItsAttempts(t *testing.T) {
	l := newLab(t)
	l.test(resource.TestStep{
		Config: l.job(`
  command  = [local.member, "print:no luck", "exit:137"]
  roles    = { worker = { replicas = 2, port = local.port, restart = { max_attempts = 2, delay = "1ms" } } }
  wait_for = "completed"`),
		ExpectError: acceptance.Says(`member job-worker-`, `on host local: exit code 137 (signal 9)`,
			`no luck no luck no luck`),
	})
}

// A group that restarts as a whole also gets another attempt during its apply.
func TestAccGroupRestartsDuringApply(t *testing.T) {
	l := newLab(t)
	once := filepath.Join(t.TempDir(), "once")
	l.test(resource.TestStep{
		Config: l.job(`
  restart_scope = "group"
  roles = {
    ps     = { replicas = 1, port = local.port, command = [local.member, "wait"] }
    worker = { replicas = 1, port = local.port + 10, command = [local.member, "once:` + once +
			`", "exit:0"], restart = { delay = "1ms" } }
  }
  completion = { when = "all", roles = ["worker"] }
  wait_for   = "completed"
  timeouts   = { create = "10m" }`),
		Check: resource.ComposeTestCheckFunc(
			l.expectStates(map[string]domain.State{
				"job-ps-0": domain.StateStopped, "job-worker-0": domain.StateCompleted,
			}),
			func(*terraform.State) error {
				document, err := engine.Get[domain.GroupDocument](t.Context(), l.engine(), "job")
				if err == nil && document.GroupRestarts != 1 {
					err = fmt.Errorf("the group was restarted %d times, want 1", document.GroupRestarts)
				}
				return err
			},
		),
	})
}

// An existing group is only adopted if it equals the specified one.
func TestAccGroupExists(t *testing.T) {
	l := newLab(t)
	config := func(command string) string {
		return l.job(`
  command = ` + command + `
  roles   = { worker = { replicas = 1, port = local.port } }`)
	}
	l.test(
		resource.TestStep{Config: l.config(theCluster)},
		resource.TestStep{
			PreConfig: func() {
				l.must(l.create(`{"cluster": "lab", "name": "job", "framework": "none", "restart_scope": "member", "wait_for": "running",
					"command": ["MEMBER", "wait"], "roles": {"worker": {"replicas": 1, "port": PORT}}}`))
				l.must(l.changes("+job-worker-0")(nil))
			},
			Config: config(`[local.member, "print:other", "wait"]`),
			ExpectError: acceptance.Says(`already has a group "job" with another specification`,
				`terraform import <address> lab/job`),
		},
		resource.TestStep{
			// The cluster can't be destroyed while it has a group.
			PreConfig:   func() { l.must(l.changes()(nil)) },
			Config:      l.config(theCluster),
			Destroy:     true,
			ExpectError: acceptance.Says(`Cluster "lab" still has group job`, `terraform import <address> lab/<name>`),
		},
		resource.TestStep{Config: l.job(`
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 1, port = local.port } }`), Check: l.changes()},
	)
}

// An apply that finds the group locked says by whom, and changes nothing.
func TestAccGroupLocked(t *testing.T) {
	l := newLab(t)
	config := func(env string) string {
		return l.job(`
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 1, port = local.port } }
  env     = { RATE = "` + env + `" }`)
	}
	var release func() error
	locked := acceptance.Says(`Locked by another run`,
		fmt.Sprintf(`group job is locked by ada@example (process %d): a long test, since`, os.Getpid()),
		`Nothing was changed`)
	l.test(
		resource.TestStep{Config: config("0.1"), Check: l.changes("+job-worker-0")},
		resource.TestStep{
			PreConfig: func() {
				var err error
				release, err = l.engine().Lock(t.Context(), reconcile.GroupLock("job"),
					engine.Holder{Who: "ada@example", Process: os.Getpid(), Operation: "a long test"})
				l.must(err)
			},
			Config:      config("0.2"),
			ExpectError: locked,
		},
		resource.TestStep{Config: config("0.1"), Destroy: true, ExpectError: locked},
		resource.TestStep{
			PreConfig: func() {
				l.must(l.changes()(nil))
				l.must(release())
			},
			Config: config("0.2"),
			Check: resource.ComposeTestCheckFunc(l.changes("~job-worker-0"), func(*terraform.State) error {
				_, held, err := l.files.Holder(reconcile.GroupLock("job"))
				if held {
					t.Error("the lock is still held")
				}
				return err
			}),
		},
	)
}
