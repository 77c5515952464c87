//go:build linux

package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// prints are the steps of a member: these, then it prints its GPUs, and waits.
func prints(first ...string) string {
	return acceptance.List(append(first, "environment:CUDA_VISIBLE_DEVICES", "environment:NVIDIA_VISIBLE_DEVICES",
		"environment:TRAINYARD_GPU_MEMORY_MIB", "wait")...)
}

// worker returns a role of this many workers with GPUs of the pool.
func worker(replicas int, args string) string {
	return fmt.Sprintf("worker = { replicas = %d, gpus = { pool = trainyard_gpu_pool.p.name }, args = %s }\n", replicas,
		args)
}

// named returns the attribute for devices, given their numbers.
func (l *Lab) named(numbers ...int) string {
	return fmt.Sprintf("devices = { %s = %s }", l.Host, acceptance.List(l.uuids(numbers...)...))
}

// uuids returns the UUIDs of devices, given their numbers.
func (l *Lab) uuids(numbers ...int) []string {
	uuids := make([]string, len(numbers))
	for i, n := range numbers {
		uuids[i] = l.devices[n].UUID
	}
	return uuids
}

// place returns how a plan shows the place of a member with devices, given their numbers.
func (l *Lab) place(numbers ...int) string {
	return l.Host + " " + strings.Join(l.uuids(numbers...), ",")
}

// use makes exactly these processes use a device.
func (l *Lab) use(n int, processes ...fakenvml.Process) {
	l.Helper()
	l.devices[n].Processes = processes
	l.nvml.Set(l.devices...)
}

// awaitSample waits until the utilisation shows the current state of the devices: the agent reports its last sample,
// which contains what the last read of the devices found.
func (l *Lab) awaitSample() {
	l.Helper()
	changed := time.Now()
	var seenAt time.Time // when a read of the devices since then was seen
	acctest.Eventually(l, "a sample of the GPUs as they are", func() bool {
		usage, err := l.Open().Usage(l.Context(), engine.ShortestWindow)
		l.must(err)
		if seenAt.IsZero() && usage.GPUs[l.devices[0].UUID].SampledAt.After(changed) {
			seenAt = time.Now()
		}
		return !seenAt.IsZero() && usage.Hosts[l.Host].SampledAt.After(seenAt)
	})
}

// printsGPUs returns a check of what members printed about their GPUs at their last start.
func (l *Lab) printsGPUs(want map[string][3]string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for member, lines := range want {
			acctest.Eventually(l, member+" to say "+strings.Join(lines[:], ", "), func() bool {
				return slices.Equal(l.lastLines(member, len(lines)), lines[:])
			})
		}
		return nil
	}
}

// restarts returns a check that a member is restarted after it is killed.
func (l *Lab) restarts(member string) resource.TestCheckFunc {
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

// showsGPU checks that a data source shows a GPU, given its number, and the process that uses it.
type showsGPU struct {
	lab    *Lab
	n      int
	member knownvalue.Check
}

// CheckState implements [statecheck.StateCheck].
func (s showsGPU) CheckState(
	ctx context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse,
) {
	n, d := s.n, s.lab.devices[s.n]
	exactly, whole, number := knownvalue.StringExact, knownvalue.Int64Exact, knownvalue.Float64Exact
	linked := s.lab.uuids(n^1, n^2, n^3)
	slices.Sort(linked)
	process := d.Processes[0]
	command := strings.TrimSpace(s.lab.shell("cat /proc/%d/comm", process.PID))
	statecheck.ExpectKnownValue("data.trainyard_gpus.lab", tfjsonpath.New("hosts").AtMapKey(s.lab.Host).AtMapKey(
		"gpus",
	).AtSliceIndex(n), knownvalue.ObjectExact(map[string]knownvalue.Check{
		"uuid": exactly(d.UUID), "index": whole(int64(n)), "model": exactly(d.Name), "pci_bus_id": exactly(d.PCIBusID),
		"memory_mib": whole(d.MemoryMiB), "memory_used_mib": whole(d.UsedMiB),
		"memory_free_mib":     whole(d.MemoryMiB - d.ReservedMiB - d.UsedMiB),
		"utilisation_percent": number(0), "memory_utilisation_percent": number(0),
		"temperature_celsius": whole(int64(d.TemperatureC)),
		"power_watts":         number(42.5), "power_limit_watts": number(300), "ecc_errors": whole(0),
		"xid": knownvalue.Null(), "xid_at": knownvalue.Null(),
		"mig": knownvalue.Bool(false), "numa_node": whole(int64(*d.NUMANode)), "nvlinks": texts(linked...),
		"trouble": knownvalue.Null(), "unknown": knownvalue.Null(),
		"processes": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
			"pid": whole(int64(process.PID)), "memory_mib": whole(process.MiB), "command": exactly(command),
			"member": s.member,
		})}),
	})).CheckState(ctx, req, resp)
}

// Members get the two GPUs of eight that the pool names, as the plan shows, and keep them.
func gpus(l *Lab) {
	two := l.config(acceptance.Pool("p", l.named(5, 4)))
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
data "trainyard_gpus" "lab" {
  cluster    = trainyard_cluster.lab
  depends_on = [trainyard_group.job]
}
`
	}
	ps := "ps = { replicas = 1, args = " + prints() + " }\n"
	placements := acceptance.Texts(map[string]string{
		"job-ps-0": l.Host, "job-worker-0": l.place(5), "job-worker-1": l.place(4),
	})
	shown := plancheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("placements"), placements)
	places := statecheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("placements"), placements)
	gpuLines := map[string][3]string{
		"job-ps-0":     {"-1", "void", ""},
		"job-worker-0": {l.devices[5].UUID, l.devices[5].UUID, ""},
		"job-worker-1": {l.devices[4].UUID, l.devices[4].UUID, ""},
	}
	has := func(member string, numbers ...int) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.trainyard_group.job",
			tfjsonpath.New("members").AtMapKey(member).AtMapKey("gpus"), texts(l.uuids(numbers...)...))
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
			Config:           config(ps + worker(2, prints())),
			ConfigPlanChecks: acceptance.Planned(shown),
			ConfigStateChecks: []statecheck.StateCheck{
				places, has("job-ps-0"), has("job-worker-0", 5), has("job-worker-1", 4),
			},
			Check: resource.ComposeTestCheckFunc(l.changes("+job-ps-0", "+job-worker-0", "+job-worker-1"),
				l.printsGPUs(gpuLines)),
		},
		resource.TestStep{
			PreConfig: func() {
				l.use(5, fakenvml.Process{PID: l.PID("job-worker-0"), MiB: 1000})
				l.use(0, fakenvml.Process{PID: 1, MiB: 2000})
				l.awaitSample()
			},
			Config:           config(ps + worker(2, prints())),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			ConfigStateChecks: []statecheck.StateCheck{
				showsGPU{l, 5, knownvalue.StringExact("job-worker-0")},
				showsGPU{l, 0, knownvalue.Null()},
				used("gpus", l.devices[5].UUID, "members", texts("job-worker-0")),
				used("gpus", l.devices[5].UUID, "utilisation_percent", knownvalue.Float64Exact(0)),
				used("gpus", l.devices[5].UUID, "mean.utilisation_percent", knownvalue.Float64Exact(0)),
				used("gpus", l.devices[5].UUID, "max.power_watts", knownvalue.Float64Exact(42.5)),
				used("gpus", l.devices[5].UUID, "p95.temperature_celsius",
					knownvalue.Int64Exact(int64(l.devices[5].TemperatureC))),
				used("gpus", l.devices[5].UUID, "host", knownvalue.StringExact(l.Host)),
				used("gpus", l.devices[0].UUID, "members", texts()),
				used("members", "job-worker-0", "gpu_memory_used_mib", knownvalue.Float64Exact(1000)),
				used("members", "job-worker-1", "gpu_memory_used_mib", knownvalue.Float64Exact(0)),
			},
		},
		resource.TestStep{
			PreConfig:         func() { l.use(5) },
			Config:            config(ps + worker(2, prints("print:again"))),
			ConfigPlanChecks:  acceptance.Planned(shown),
			ConfigStateChecks: []statecheck.StateCheck{places},
			Check: resource.ComposeTestCheckFunc(l.changes("~job-worker-0", "~job-worker-1"),
				l.printsGPUs(gpuLines), l.restarts("job-worker-0"), l.printsGPUs(gpuLines)),
		},
		resource.TestStep{
			Config: config(ps + worker(3, prints())),
			ExpectError: acceptance.Says(
				`roles["worker"].gpus: role "worker" has 3 members of 1 GPU of pool "p" each, and only 2 of them fit`,
			),
		},
		resource.TestStep{
			Config: config(ps+worker(2, prints())) + group("other",
				"command = [local.member]\n roles = {\n"+worker(1, prints())+"}"),
			ExpectError: acceptance.Says(`only 0 of them fit`, "host "+l.Host+": 0 of 2 GPUs free",
				`held by job-worker-0 of group job`, `held by job-worker-1 of group job`),
		},
	)
}
