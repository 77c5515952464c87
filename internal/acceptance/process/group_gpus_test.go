//go:build linux

package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// tells are the steps of a member that takes these, writes which GPUs it has, and waits.
func tells(first ...string) string {
	return acceptance.List(append(first, "environment:CUDA_VISIBLE_DEVICES", "environment:NVIDIA_VISIBLE_DEVICES", "environment:TRAINYARD_GPU_MEMORY_MIB", "wait")...)
}

// ownName is the name of this process, as a GPU's processes have it.
func ownName() string { return filepath.Base(os.Args[0]) }

// worker is a role of so many workers with GPUs of the pool.
func worker(replicas int, gpus, args string) string {
	return fmt.Sprintf("worker = { replicas = %d, gpus = { pool = trainyard_gpu_pool.p.name %s }, args = %s }\n", replicas, gpus, args)
}

// told returns a check of what members have written of their GPUs when they were last started.
func (l *gpuLab) told(want map[string][3]string) resource.TestCheckFunc {
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

// restarts returns a check that a member is started again that is killed.
func (l *gpuLab) restarts(member string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		before := l.state(member)
		l.kill(member)
		acctest.Eventually(l, "another start of "+member, func() bool {
			now := l.state(member)
			return now.State == domain.StateRunning && now.Instance != before.Instance
		})
		return nil
	}
}

// Members get the two cards of eight that the pool names, which the plan shows, and keep them.
func TestAccGroupWithGPUs(t *testing.T) {
	l := newGPULab(t, fakenvml.V100s("dgx", 8)...)
	two := l.config(theCluster, acceptance.Pool("p", l.named(5, 4)))
	config := func(roles string) string {
		return two + group("job", "command = [local.member]\n roles = {\n"+roles+"}") + `
data "trainyard_group" "job" {
  cluster    = trainyard_cluster.lab
  name       = "job"
  depends_on = [trainyard_group.job]
}
data "trainyard_utilisation" "now" {
  cluster    = trainyard_cluster.lab
  depends_on = [trainyard_group.job]
}
data "trainyard_gpus" "local" {
  cluster    = trainyard_cluster.lab
  depends_on = [trainyard_group.job]
}
`
	}
	ps := "ps = { replicas = 1, args = " + tells() + " }\n"
	placements := acceptance.Texts(map[string]string{"job-ps-0": "local", "job-worker-0": l.place(5), "job-worker-1": l.place(4)})
	shown := plancheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("placements"), placements)
	places := statecheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("placements"), placements)
	told := map[string][3]string{
		"job-ps-0":     {"-1", "void", ""},
		"job-worker-0": {l.devices[5].UUID, l.devices[5].UUID, ""},
		"job-worker-1": {l.devices[4].UUID, l.devices[4].UUID, ""},
	}
	has := func(member string, numbers ...int) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.trainyard_group.job", tfjsonpath.New("members").AtMapKey(member).AtMapKey("gpus"), textList(l.uuids(numbers...)...))
	}
	used := func(of, name, attribute string, check knownvalue.Check) statecheck.StateCheck {
		at := tfjsonpath.New(of).AtMapKey(name)
		for part := range strings.SplitSeq(attribute, ".") {
			at = at.AtMapKey(part)
		}
		return statecheck.ExpectKnownValue("data.trainyard_utilisation.now", at, check)
	}
	l.test(
		resource.TestStep{Config: two},
		resource.TestStep{
			Config:            config(ps + worker(2, "", tells())),
			ConfigPlanChecks:  acceptance.Planned(shown),
			ConfigStateChecks: []statecheck.StateCheck{places, has("job-ps-0"), has("job-worker-0", 5), has("job-worker-1", 4)},
			Check:             resource.ComposeTestCheckFunc(l.changes("+job-ps-0", "+job-worker-0", "+job-worker-1"), l.told(told)),
		},
		resource.TestStep{
			PreConfig: func() {
				l.change(5, usedBy(fakenvml.Process{PID: l.state("job-worker-0").PID, MiB: 1000}))
				l.change(0, usedBy(fakenvml.Process{PID: os.Getpid(), MiB: 2000}))
				l.awaitSample()
			},
			Config:           config(ps + worker(2, "", tells())),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			ConfigStateChecks: []statecheck.StateCheck{
				showsGPU{l, 5, "sh", knownvalue.StringExact("job-worker-0")},
				showsGPU{l, 0, ownName(), knownvalue.Null()},
				used("gpus", l.devices[5].UUID, "members", textList("job-worker-0")),
				used("gpus", l.devices[5].UUID, "utilisation_percent", knownvalue.Float64Exact(0)),
				used("gpus", l.devices[5].UUID, "mean.utilisation_percent", knownvalue.Float64Exact(0)),
				used("gpus", l.devices[5].UUID, "max.power_watts", knownvalue.Float64Exact(42.5)),
				used("gpus", l.devices[5].UUID, "p95.temperature_celsius", knownvalue.Int64Exact(int64(l.devices[5].TemperatureC))),
				used("gpus", l.devices[5].UUID, "host", knownvalue.StringExact("local")),
				used("gpus", l.devices[0].UUID, "members", textList()),
				used("members", "job-worker-0", "gpu_memory_used_mib", knownvalue.Float64Exact(1000)),
				used("members", "job-worker-1", "gpu_memory_used_mib", knownvalue.Float64Exact(0)),
			},
		},
		resource.TestStep{
			PreConfig:         func() { l.change(5, usedBy()) },
			Config:            config(ps + worker(2, "", tells("print:again"))),
			ConfigPlanChecks:  acceptance.Planned(shown),
			ConfigStateChecks: []statecheck.StateCheck{places},
			Check:             resource.ComposeTestCheckFunc(l.changes("~job-worker-0", "~job-worker-1"), l.told(told), l.restarts("job-worker-0"), l.told(told)),
		},
		resource.TestStep{
			Config:      config(ps + worker(3, "", tells())),
			ExpectError: acceptance.Says(`roles["worker"].gpus: role "worker" has 3 members of 1 GPU of pool "p" each, and only 2 of them fit`),
		},
		resource.TestStep{
			Config:      config(ps+worker(2, "", tells())) + group("other", "command = [local.member]\n roles = {\n"+worker(1, "", tells())+"}"),
			ExpectError: acceptance.Says(`only 0 of them fit`, `host local: 0 of 2 GPUs free`, `held by job-worker-0 of group job`, `held by job-worker-1 of group job`),
		},
	)
}

// Groups that choose from one pool, and don't depend on one another, are planned and applied in any order.
func TestAccGroupsOfOneGPUPool(t *testing.T) {
	l := newGPULab(t, fakenvml.V100s("dgx", 4)...)
	parts, names := []string{theCluster, acceptance.Pool("p", l.named(0, 1, 2, 3))}, []string{"a", "b", "c"}
	steps := []resource.TestStep{{Config: l.config(parts...)}}
	for _, name := range names {
		parts = append(parts, group(name, "command = [local.member]\n roles = {\n"+worker(1, "", tells())+"}"))
	}
	steps = append(steps, resource.TestStep{
		Config:           l.config(parts...),
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectUnknownValue("trainyard_group.a", tfjsonpath.New("placements"))),
		Check: func(state *terraform.State) error {
			given := map[string]bool{}
			for _, name := range names {
				given[state.RootModule().Resources["trainyard_group."+name].Primary.Attributes["placements."+name+"-worker-0"]] = true
			}
			if len(given) != len(names) {
				return fmt.Errorf("%d groups have the places %v", len(names), sorted(given))
			}
			return nil
		},
	})
	l.test(steps...)
}

// showsGPU is a data source that shows a GPU, by its number, and the process that uses it.
type showsGPU struct {
	lab     *gpuLab
	n       int
	command string
	member  knownvalue.Check
}

func (s showsGPU) CheckState(ctx context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	n, d := s.n, s.lab.devices[s.n]
	exactly, whole, number := knownvalue.StringExact, knownvalue.Int64Exact, knownvalue.Float64Exact
	linked := s.lab.uuids(n^1, n^2, n^3)
	slices.Sort(linked)
	process := d.Processes[0]
	statecheck.ExpectKnownValue("data.trainyard_gpus.local", tfjsonpath.New("hosts").AtMapKey("local").AtMapKey("gpus").AtSliceIndex(n), knownvalue.ObjectExact(map[string]knownvalue.Check{
		"uuid": exactly(d.UUID), "index": whole(int64(n)), "model": exactly(d.Name), "pci_bus_id": exactly(d.PCIBusID),
		"memory_mib": whole(d.MemoryMiB), "memory_used_mib": whole(d.UsedMiB), "memory_free_mib": whole(d.MemoryMiB - d.ReservedMiB - d.UsedMiB),
		"utilisation_percent": number(0), "memory_utilisation_percent": number(0), "temperature_celsius": whole(int64(d.TemperatureC)),
		"power_watts": number(42.5), "power_limit_watts": number(300), "ecc_errors": whole(0), "xid": knownvalue.Null(), "xid_at": knownvalue.Null(),
		"mig": knownvalue.Bool(false), "numa_node": whole(int64(*d.NUMANode)), "nvlinks": textList(linked...), "trouble": knownvalue.Null(), "unknown": knownvalue.Null(),
		"processes": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
			"pid": whole(int64(process.PID)), "memory_mib": whole(process.MiB), "command": exactly(s.command), "member": s.member,
		})}),
	})).CheckState(ctx, req, resp)
}

// Members share an A40 by slots of its memory, of which there are 37: so many run on it, and no more.
func TestAccGroupWithSlots(t *testing.T) {
	l := newGPULab(t, acceptance.A40())
	config := func(replicas int, memory string) string {
		return l.config(theCluster, acceptance.Pool("p", l.named(0)+"\n sharing = \"slots\"\n memory_mib_per_slot = 1199"),
			group("job", "command = [local.member]\n roles = {\n"+worker(replicas, memory, tells())+"}"))
	}
	uuid := l.devices[0].UUID
	l.test(
		resource.TestStep{
			Config: config(2, ", memory_mib = 2000"),
			Check:  l.told(map[string][3]string{"job-worker-0": {uuid, uuid, "2000"}, "job-worker-1": {uuid, uuid, "2000"}}),
		},
		resource.TestStep{
			Config: config(37, ""),
			Check: resource.ComposeTestCheckFunc(
				l.expectAlive(37),
				resource.TestCheckResourceAttr(acceptance.TheJob, "placements.%", "37"),
				resource.TestCheckResourceAttr(acceptance.TheJob, "placements.job-worker-36", l.place(0)),
				l.told(map[string][3]string{"job-worker-36": {uuid, uuid, ""}}),
			),
		},
		resource.TestStep{
			Config:      config(38, ""),
			ExpectError: acceptance.Says(`role "worker" has 38 members of 1 slot of 1199 MiB on 1 GPU of pool "p" each, and only 37 of them fit`),
		},
	)
}
