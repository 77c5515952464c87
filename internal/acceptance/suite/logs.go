//go:build linux

package suite

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// A group's log is printed to its end, for each run only its own.
func groupLogs(l *Lab) {
	config := func(run int) string {
		return l.job(fmt.Sprintf(`
  framework = "tensorflow"
  roles = {
    ps     = { replicas = 1, command = [local.member, "print:serves", "exit:0"] }
    worker = { replicas = 1, command = [local.member, "print:same", "print:same", "environment:RUN", "exit:0"] }
  }
  env        = { RUN = "run %[1]d" }
  triggers   = { run = "%[1]d" }
  completion = { stop_rest = false }`, run))
	}
	says := func(want string, command ...string) resource.TestCheckFunc {
		return func(*terraform.State) error { return acceptance.Differences(want, l.CommandOutput(command...)) }
	}
	l.test(
		resource.TestStep{Config: config(1), Check: says("same\nsame\nrun 1\n", "logs", "job", "--follow")},
		resource.TestStep{Config: config(2), Check: resource.ComposeTestCheckFunc(
			says("same\nsame\nrun 2\n", "logs", "job", "--follow"),
			says("same\nsame\nrun 2\n", "logs", "job"),
			func(*terraform.State) error {
				// The group may complete before its other member has printed anything.
				last := ""
				l.Cleanup(func() {
					if l.Failed() {
						l.Logf("the log of the other member is %q", last)
					}
				})
				acctest.Eventually(l, "the log of the other member", func() bool {
					last = l.CommandOutput("logs", "job", "--member", "job-ps-0")
					return last == "serves\n"
				})
				return nil
			},
			says("job-ps-0 | serves\njob-worker-0 | same\njob-worker-0 | same\njob-worker-0 | run 2\n",
				"logs", "job", "--all", "--follow"),
		)},
	)
}
