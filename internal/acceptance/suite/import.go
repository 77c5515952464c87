//go:build linux

package suite

import (
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// rich is a group that says all there is to say.
const rich = `
  framework = "tensorflow_v1"
  command   = [local.member]
  args      = ["print:{{ .Name }}", "wait"]
  env       = { RATE = "0.1" }
  mounts    = [{ source = "/tmp", target = "/tmp" }]
  roles = {
    ps = { replicas = 1, port = local.port, working_dir = "/" }
    worker = {
      replicas     = 2
      port         = local.port + 10
      env          = { SIZE = "3" }
      resources    = { cpus = 0.1, memory_mib = 64 }
      placement    = { strategy = "pack" }
      restart      = { condition = "on_failure", max_attempts = 3, delay = "2s" }
      exit_codes   = { final = ["1-3", "42"] }
      grace_period = "3s"
    }
  }
  completion    = { when = "all", roles = ["worker"], deadline = "10h0m0s", stop_rest = false }
  restart_scope = "group"
  triggers      = { run = "1" }`

// An import brings all back that the configuration says: the plan after it is empty.
func imports(l *Lab) {
	config := l.job(rich)
	by := func(kind resource.ImportStateKind, name, id string) resource.TestStep {
		return resource.TestStep{
			Config: config, ResourceName: name, ImportState: true, ImportStateKind: kind, ImportStateId: id,
			ImportStateVerify: kind == resource.ImportCommandWithID,
		}
	}
	failing := func(name, id string, phrases ...string) resource.TestStep {
		step := by(resource.ImportCommandWithID, name, id)
		step.ExpectError = acceptance.Says(phrases...)
		return step
	}
	l.test(
		resource.TestStep{Config: config},
		by(resource.ImportCommandWithID, acceptance.TheLab, l.importID()),
		by(resource.ImportCommandWithID, acceptance.TheJob, l.importID("job")),
		// These check that the plan is empty.
		by(resource.ImportBlockWithID, acceptance.TheLab, l.importID()),
		by(resource.ImportBlockWithID, acceptance.TheJob, l.importID("job")),
		failing(acceptance.TheLab, "nowhere", `cluster "nowhere"`, l.Nowhere),
		failing(acceptance.TheJob, "job", `"job" is not the ID of a group`, `<cluster>/<group>`),
		failing(acceptance.TheLab, l.ImportFrom+"nowhere", `cluster "nowhere"`),
		failing(acceptance.TheJob, l.importID("nothing"), `Cannot import non-existent remote object`),
	)
}
