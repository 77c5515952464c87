//go:build linux

package swarm_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// TestAccSwarmPool takes interchangeable workers through their lifecycle: they share a service, and grow, shrink and
// change their update settings without a restart.
func TestAccSwarmPool(t *testing.T) {
	l := newSwarmLab(t, sharedBed(t), "farm")
	spark := func(workers string) string {
		return l.config(l.cluster(""), l.group(fmt.Sprintf(`
  framework = "spark"
  image     = %q
  args      = ["wait"]
  roles = {
    master = { replicas = 1, port = 7077 }
    worker = { %s }
  }`, memberImage, workers)))
	}
	const address = "trainyard_group.job"
	nothing := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	l.test(
		resource.TestStep{
			Config:      spark(`replicas = 2, args = ["print:{{ .Index }}", "wait"]`),
			ExpectError: regexp.MustCompile(`(?s)roles\["worker"\].*interchangeable`),
		},
		resource.TestStep{
			Config: spark("replicas = 2"), ConfigPlanChecks: nothing,
			Check: resource.ComposeAggregateTestCheckFunc(
				l.changes("+farm-master-0", "+farm-worker.1", "+farm-worker.2"),
				resource.TestCheckResourceAttr(address, "members.%", "3"),
				resource.TestCheckResourceAttr(address, "members.farm-master-0", "farm-master-0:7077"),
				resource.TestCheckResourceAttr(address, "members.farm-worker-1", "farm-worker:20000"),
				resource.TestCheckResourceAttr(address, "placements.%", "1"),
				resource.TestCheckResourceAttrSet(address, "placements.farm-master-0"),
				resource.TestCheckResourceAttr(address, "cluster_spec.%", "1"),
			),
		},
		resource.TestStep{
			Config: spark("replicas = 4"), ConfigPlanChecks: nothing,
			Check: resource.ComposeAggregateTestCheckFunc(
				l.changes("+farm-worker.3", "+farm-worker.4"),
				resource.TestCheckResourceAttr(address, "members.farm-worker-3", "farm-worker:20000"),
			),
		},
		resource.TestStep{
			Config: spark(
				`replicas = 4, update = { parallelism = 2, delay = "1s", on_failure = "rollback" }`,
			),
			ConfigPlanChecks: nothing,
			Check:            l.changes(),
		},
		resource.TestStep{
			Config: spark(
				`replicas = 4, env = { RATE = "1" }, update = { parallelism = 2, delay = "1000ms", on_failure = "rollback" }`,
			), ConfigPlanChecks: nothing,
			Check: l.changes("~farm-worker.1", "~farm-worker.2", "~farm-worker.3", "~farm-worker.4"),
		},
		resource.TestStep{
			Config: spark(`replicas = 0`), ConfigPlanChecks: nothing,
			Check: resource.ComposeAggregateTestCheckFunc(
				l.changes("-farm-worker.1", "-farm-worker.2", "-farm-worker.3", "-farm-worker.4"),
				resource.TestCheckResourceAttr(address, "members.%", "1"),
			),
		},
	)
}
