//go:build linux

package process_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// A group whose restart scope is the group restarts as a whole, without Terraform.
func TestAccGroupRestartsAsAWhole(t *testing.T) {
	l := newLab(t)
	config := l.job(`
  command       = [local.member, "wait"]
  restart_scope = "group"
  roles = {
    ps     = { replicas = 1, port = local.port }
    worker = { replicas = 1, port = local.port + 10, restart = { delay = "1ms" } }
  }`)
	l.test(
		resource.TestStep{Config: config, Check: l.changes("+job-ps-0", "+job-worker-0")},
		resource.TestStep{
			PreConfig: func() {
				before := l.instances()
				l.kill("job-worker-0")
				acctest.Eventually(l, "the restart of the group", func() bool {
					return l.state("job-ps-0").Instance != before["job-ps-0"] &&
						l.state("job-ps-0").State == domain.StateRunning &&
						l.state("job-worker-0").Instance != before["job-worker-0"] &&
						l.state("job-worker-0").State == domain.StateRunning
				})
			},
			Config:           config,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			Check:            resource.ComposeTestCheckFunc(l.changes("~job-ps-0", "~job-worker-0"), l.expectAlive(2)),
		},
	)
}
