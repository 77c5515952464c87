//go:build linux

package process_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// Numbers from expressions that no float64 represents exactly are kept as they are: the plan after each step is empty.
func TestAccNumbersOfExpressions(t *testing.T) {
	l := newLab(t)
	config := func(cpus string) string {
		return l.config(`
resource "trainyard_cluster" "lab" {
  name  = "lab"
  hosts = { local = { capacity = { cpus = 7 / 3 } } }
}
`, group("job", waiting(`replicas = 2, resources = { cpus = `+cpus+`, limits = { cpus = 2 / 3 } }`)), `
resource "trainyard_autoscaling_policy" "farm" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.farm.name
  role    = "worker"
  min     = 1
  max     = 2
  metrics = { cpu = { source = { agent = { measure = "cpu_percent" } }, algorithm = { target = { value = 200 / 3 } } } }
  scale_in = { tolerance = 1 / 3, rates = [{ percent = 100 / 3, period = "60s" }] }
  guards   = { member_hours_per_day = 1000 / 3 }
}
`, group("farm", waiting(`resources = { cpus = 0.1 / 3 }`)), `
output "traffic" { value = provider::trainyard::ps_bandwidth_gbps(1000000000 / 3, 4, 10, 1, 0.33 * 0.7) }
`)
	}
	l.test(
		resource.TestStep{Config: config("1 / 3"), Check: l.expectAlive(3)},
		resource.TestStep{
			Config: config("0.33 * 0.7"), ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check: l.expectAlive(3),
		},
		resource.TestStep{Config: config("0.33 * 0.7"), PlanOnly: true},
	)
}
