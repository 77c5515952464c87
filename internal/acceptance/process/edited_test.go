//go:build linux

package process_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// edit changes a stored document by hand, behind Terraform's back.
func edit[T any, P domain.Document[T]](l *lab, name string, change func(*T)) {
	l.Helper()
	document, err := engine.Get[T, P](l.Context(), l.engine(), name)
	l.must(err)
	change(&document)
	_, err = engine.Put[T, P](l.Context(), l.engine(), document)
	l.must(err)
}

// What others have changed in a cluster, a pool or a sweep shows in the plan, and an apply repairs it. No run that has
// ended starts again. A sweep that others have deleted is created again. The tests of groups, policies and files do the
// same.
func TestAccEditedByOthers(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	const theSweep = "trainyard_sweep.lr"
	config := l.config(`
resource "trainyard_cluster" "lab" {
  name  = "lab"
  hosts = { local = { labels = { disk = "ssd" } } }
}`, acceptance.Pool("p", `
  select              = { model = "NVIDIA A*" }
  sharing             = "slots"
  memory_mib_per_slot = 1199`), acceptance.Runs(map[string]string{"a": "exit:0"},
		"max_parallel = 2\nwait_for = \"completed\""))
	l.test(
		resource.TestStep{Config: config, Check: l.attempts(map[string]int{"a": 1})},
		resource.TestStep{
			PreConfig: func() {
				edit(l.lab, "", func(d *domain.ClusterDocument) {
					host := d.Spec.Hosts["local"]
					host.Labels = map[string]string{"disk": "hdd"}
					d.Spec.Hosts["local"] = host
				})
				edit(l.lab, "p", func(d *domain.GPUPoolDocument) { d.Spec.MemoryMiBPerSlot = 2398 })
				edit(l.lab, "lr", func(d *domain.SweepDocument) { *d.Spec.MaxParallel = 1 })
			},
			Config: config,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionUpdate),
				acceptance.Shows(acceptance.TheLab,
					tfjsonpath.New("hosts").AtMapKey("local").AtMapKey("labels").AtMapKey("disk"), "hdd", "ssd"),
				plancheck.ExpectResourceAction(thePool, plancheck.ResourceActionUpdate),
				acceptance.Shows(thePool, tfjsonpath.New("memory_mib_per_slot"), 2398, 1199),
				plancheck.ExpectResourceAction(theSweep, plancheck.ResourceActionUpdate),
				acceptance.Shows(theSweep, tfjsonpath.New("max_parallel"), 1, 2),
			),
			Check: l.attempts(map[string]int{"a": 1}),
		},
		resource.TestStep{
			PreConfig: func() { l.must(engine.Delete[domain.SweepDocument](t.Context(), l.engine(), "lr")) },
			Config:    config,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(theSweep,
				plancheck.ResourceActionCreate)),
		},
	)
}
