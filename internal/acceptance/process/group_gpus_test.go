//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// prints are the steps of a member: these, then it prints its GPUs, and waits.
func prints(first ...string) string {
	return acceptance.List(append(first, "environment:CUDA_VISIBLE_DEVICES", "environment:NVIDIA_VISIBLE_DEVICES",
		"environment:TRAINYARD_GPU_MEMORY_MIB", "wait")...)
}

// ownName is the name of this process in a GPU's list.
func ownName() string { return filepath.Base(os.Args[0]) }

// worker returns a role of this many workers with GPUs of the pool.
func worker(replicas int, gpus, args string) string {
	return fmt.Sprintf("worker = { replicas = %d, gpus = { pool = trainyard_gpu_pool.p.name %s }, args = %s }\n",
		replicas, gpus, args)
}

// printsGPUs returns a check of what members printed about their GPUs at their last start.
func (l *gpuLab) printsGPUs(want map[string][3]string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for member, lines := range want {
			acctest.Eventually(l, member+" to say "+strings.Join(lines[:], ", "), func() bool {
				got := l.logs(member)[member]
				return len(got) >= len(lines) && [3]string(got[len(got)-len(lines):]) == lines
			})
		}
		return nil
	}
}

// Groups that take from one pool, and don't depend on one another, are planned and applied in any order.
func TestAccGroupsOfOneGPUPool(t *testing.T) {
	l := newGPULab(t, fakenvml.V100s("dgx", 4)...)
	parts, names := []string{theCluster, acceptance.Pool("p", l.named(0, 1, 2, 3))}, []string{"a", "b", "c"}
	steps := []resource.TestStep{{Config: l.config(parts...)}}
	for _, name := range names {
		parts = append(parts, group(name, "command = [local.member]\n roles = {\n"+worker(1, "", prints())+"}"))
	}
	steps = append(steps, resource.TestStep{
		Config: l.config(parts...),
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectUnknownValue("trainyard_group.a",
			tfjsonpath.New("placements"))),
		Check: func(state *terraform.State) error {
			given := map[string]bool{}
			for _, name := range names {
				given[state.RootModule().Resources["trainyard_group."+
					name].Primary.Attributes["placements."+name+"-worker-0"]] = true
			}
			if len(given) != len(names) {
				return fmt.Errorf("%d groups have the places %v", len(names), sorted(given))
			}
			return nil
		},
	})
	l.test(steps...)
}

// Members share an A40 by slots of its memory, of which there are 37: exactly as many members fit.
func TestAccGroupWithSlots(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	config := func(replicas int, memory string) string {
		return l.config(theCluster,
			acceptance.Pool("p", l.named(0)+"\n sharing = \"slots\"\n memory_mib_per_slot = 1199"),

			group("job", "command = [local.member]\n roles = {\n"+worker(replicas, memory, prints())+"}"))
	}
	uuid := l.devices[0].UUID
	l.test(
		resource.TestStep{
			Config: config(2, ", memory_mib = 2000"),
			Check: l.printsGPUs(map[string][3]string{
				"job-worker-0": {uuid, uuid, "2000"}, "job-worker-1": {uuid, uuid, "2000"},
			}),
		},
		resource.TestStep{
			Config: config(37, ""),
			Check: resource.ComposeTestCheckFunc(
				l.expectAlive(37),
				resource.TestCheckResourceAttr(acceptance.TheJob, "placements.%", "37"),
				resource.TestCheckResourceAttr(acceptance.TheJob, "placements.job-worker-36", l.place(0)),
				l.printsGPUs(map[string][3]string{"job-worker-36": {uuid, uuid, ""}}),
			),
		},
		resource.TestStep{
			Config: config(38, ""),
			ExpectError: acceptance.Says(
				`role "worker" has 38 members of 1 slot of 1199 MiB on 1 GPU of pool "p" each, and only 37 of them fit`,
			),
		},
	)
}
