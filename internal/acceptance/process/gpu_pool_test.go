//go:build linux

package process_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// textList checks a list of strings in a state.
func textList(texts ...string) knownvalue.Check {
	checks := make([]knownvalue.Check, len(texts))
	for i, text := range texts {
		checks[i] = knownvalue.StringExact(text)
	}
	return knownvalue.ListExact(checks)
}

// A pool is created with its cluster, changed in place, recreated when it is gone, and imported; the plan after each
// step is empty.
func TestAccGPUPool(t *testing.T) {
	l := newGPULab(t, append(fakenvml.V100s("dgx", 8), acceptance.A40())...)
	known := func(name string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(thePool, tfjsonpath.New(name), check)
	}
	devices := func(numbers ...int) knownvalue.Check {
		return knownvalue.MapExact(map[string]knownvalue.Check{"local": textList(l.uuids(numbers...)...)})
	}
	config := func(attributes string) string { return l.config(theCluster, acceptance.Pool("p", attributes)) }
	slots := config(`
  select              = { model = "NVIDIA A*" }
  sharing             = "slots"
  memory_mib_per_slot = 1199`)
	l.test(
		resource.TestStep{
			Config: config(l.named(5, 4)),
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectKnownValue(thePool, tfjsonpath.New("devices"), devices(5, 4)),
				plancheck.ExpectUnknownValue(thePool, tfjsonpath.New("slots")),
			),
			ConfigStateChecks: []statecheck.StateCheck{
				known("id", knownvalue.StringExact("lab/p")), known("devices", devices(5, 4)),
				known("slots", knownvalue.Int64Exact(2)),
				known("sharing", knownvalue.StringExact("exclusive")),
				known("strategy", knownvalue.StringExact("spread")),
				known("on_foreign_process", knownvalue.StringExact("avoid")),
				known("reserve_percent", knownvalue.Null()), known("select", knownvalue.Null()),
			},
		},
		resource.TestStep{
			Config: slots,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(thePool, plancheck.ResourceActionUpdate),
				plancheck.ExpectKnownValue(thePool, tfjsonpath.New("devices"), devices(8)),
				plancheck.ExpectKnownValue(thePool, tfjsonpath.New("device_slots"),
					knownvalue.MapExact(map[string]knownvalue.Check{l.devices[8].UUID: knownvalue.Int64Exact(37)})),
			),
			ConfigStateChecks: []statecheck.StateCheck{
				known("devices", devices(8)), known("slots", knownvalue.Int64Exact(37)),
			},
		},
		resource.TestStep{
			PreConfig: func() { l.must(engine.Delete[domain.GPUPoolDocument](t.Context(), l.engine(), "p")) },
			Config:    slots,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(thePool,
				plancheck.ResourceActionCreate)),
		},
		resource.TestStep{
			Config: slots, ResourceName: thePool, ImportState: true, ImportStateId: "lab/p", ImportStateVerify: true,
		},
		resource.TestStep{
			Config: slots, ResourceName: thePool, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportStateId: "lab/p",
		},
		resource.TestStep{
			Config: slots, ResourceName: thePool, ImportState: true, ImportStateId: "p",
			ExpectError: acceptance.Says(`"p" is not the ID of a GPU pool, which is <cluster>/<pool>`),
		},
	)
}

// Terraform supports import by identity since 1.12.
func TestAccGPUPoolImportByIdentity(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: l.providers(),
		Steps: []resource.TestStep{
			{Config: l.config(theCluster, acceptance.Pool("p", l.named(0)))},
			{ResourceName: thePool, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
		},
	})
}
