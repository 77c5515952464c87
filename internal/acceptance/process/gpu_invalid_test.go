//go:build linux

package process_test

import (
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// What can be checked about GPUs without the cluster fails at plan time.
func TestAccGPUsInvalid(t *testing.T) {
	l := newLab(t)
	invalidPool := func(attributes string, says ...string) invalid {
		return invalid{acceptance.Pool("p", attributes), says}
	}
	role := func(gpus string, says ...string) invalid { return invalid{group("job", waiting(gpus)), says} }
	const device = `devices = { gpu1 = ["GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91"] }` + "\n"
	l.test(l.refused(theCluster, []invalid{
		{acceptance.Pool("P_1", device), []string{`name: "P_1" is not a DNS label`}},
		invalidPool("", `devices: a GPU pool needs devices: name them by host`),
		invalidPool(device+"select = {}", `select: devices and select are mutually exclusive`),
		invalidPool("devices = {}", `devices: devices is empty`),
		invalidPool("devices = { gpu1 = [] }", `devices["gpu1"]: host "gpu1" has no devices listed`),
		invalidPool(`devices = { gpu1 = ["0"] }`, `devices["gpu1"][0]: "0" is not a GPU UUID`,
			`Indexes are not accepted`),
		invalidPool(`devices = { gpu1 = ["MIG-4fa6a2a8"] }`, `devices["gpu1"][0]: "MIG-4fa6a2a8" is a MIG device`),
		invalidPool(`devices = { gpu1 = ["GPU-1", "GPU-1"] }`,
			`devices["gpu1"][1]: "GPU-1" is already listed at devices["gpu1"][0]`),
		invalidPool(`select = { model = "[" }`, `select.model: "[" is not a valid pattern`),
		invalidPool(`select = { memory_mib = -1 }`, `select.memory_mib: must be 0 or more, got -1`),
		invalidPool(`select = { max_per_host = -1 }`, `select.max_per_host: must be 1 or more, got -1`),
		invalidPool(device+`sharing = "mig"`, `sharing: unknown sharing "mig"; use one of ["exclusive" "slots"]`),
		invalidPool(device+`sharing = "slots"`, `memory_mib_per_slot: must be 1 or more`),
		invalidPool(device+`memory_mib_per_slot = 1199`, `memory_mib_per_slot: the pool's devices are exclusive`,
			`set sharing = "slots"`),
		invalidPool(device+`reserve_percent = 3`, `reserve_percent: the pool's devices are exclusive`),
		invalidPool(device+"sharing = \"slots\"\n memory_mib_per_slot = 1199\n reserve_percent = 100",
			`reserve_percent: must be at least 0 and below 100, got 100`),
		invalidPool(device+`strategy = "one_per_host"`,
			`strategy: unknown strategy "one_per_host"; use one of ["spread" "pack"]`),
		invalidPool(device+`on_foreign_process = "kill"`,
			`on_foreign_process: unknown rule "kill"; use one of ["ignore" "warn" "avoid"]`),
		role(`gpus = { pool = "P_1" }`, `roles["worker"].gpus.pool: "P_1" is not a DNS label`),
		role(`gpus = { pool = "p", count = -1 }`, `roles["worker"].gpus.count: must be 1 or more, got -1`),
		role(`gpus = { pool = "p", count = 0 }`,
			`roles["worker"].gpus.count: must be 1 or more, got 0. Leave gpus out (null) for no GPUs`),
		role(`gpus = { pool = "p", memory_mib = -1 }`,
			`roles["worker"].gpus.memory_mib: role "worker" asks for -1 MiB on each GPU; it must be 1 or more`),
		role(`gpus = { pool = "p" }, env = { CUDA_VISIBLE_DEVICES = "0" }`,
			`roles["worker"].env["CUDA_VISIBLE_DEVICES"]: CUDA_VISIBLE_DEVICES is set by Trainyard`),
	})...)
}

// What needs a look at the GPUs fails at plan time as well.
func TestAccGPUsImpossible(t *testing.T) {
	l := newGPULab(t, append(fakenvml.V100s("dgx", 4), acceptance.A40())...)
	first := l.devices[0].UUID
	left := acceptance.Pool("p", l.named(0, 1))
	job := group("job", waiting("gpus = { pool = trainyard_gpu_pool.p.name }"))
	steps := []resource.TestStep{{Config: l.config(theCluster)}}
	for _, test := range []struct {
		change func(*fakenvml.Device) // to the first device
		faults fakenvml.Faults
		config string
		says   []string
	}{
		{config: acceptance.Pool("p", `devices = { local = ["GPU-0"] }`), says: []string{
			`devices["local"][0]: host "local" has no GPU GPU-0; it has ` + first + ` (Tesla V100-SXM2-32GB)`,
		}},
		{
			config: acceptance.Pool("p", `devices = { gpu1 = ["GPU-0"] }`),
			says:   []string{`devices["gpu1"]: cluster "lab" has no host "gpu1"; its hosts are local`},
		},
		{config: acceptance.Pool("p", `select = { model = "NVIDIA H100*" }`), says: []string{
			`select: no GPU of cluster "lab" matches select; host local: ` + first +
				` (Tesla V100-SXM2-32GB, 32768 MiB): its model does not match "NVIDIA H100*"`,
		}},
		{
			config: acceptance.Pool("p", l.named(4)+"\n sharing = \"slots\"\n memory_mib_per_slot = 46000"),
			says:   []string{`memory_mib_per_slot: a slot of 46000 MiB does not fit into ` + l.devices[4].UUID},
		},
		{
			config: left + acceptance.Pool("q", l.named(1, 2)+"\n depends_on = [trainyard_gpu_pool.p]"),
			says:   []string{`devices["local"][0]: ` + l.devices[1].UUID + ` of host "local" is in pools "p" and "q"`},
		},
		{
			config: group("job", waiting(`gpus = { pool = "nothing" }`)),
			says:   []string{`roles["worker"].gpus.pool:`, `"nothing"`},
		},
		{
			config: left + group("job", waiting("gpus = { pool = trainyard_gpu_pool.p.name, count = 3 }")),
			says:   []string{`roles["worker"].gpus.count: each member of role "worker" asks for 3 GPUs of pool "p"`},
		},
		{
			change: usedBy(fakenvml.Process{PID: os.Getpid(), MiB: 2000}), config: acceptance.Pool("p",
				l.named(0)) + job,
			says: []string{
				`roles["worker"].gpus:`, `only 0 of them fit`, "used by " + ownName() + " (process",
				`stop what uses them`,
			},
		},
		{change: func(d *fakenvml.Device) { d.MIG = true }, config: left, says: []string{
			`devices["local"][0]: ` + first + ` of host "local" can't be in a pool: it is partitioned by MIG`,
		}},
		{
			change: func(d *fakenvml.Device) { d.MIG, d.Lost = false, true }, config: left,
			says: []string{`devices["local"][0]: ` + first + ` of host "local" can't be in a pool: fallen off the bus`},
		},
		{faults: fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.DriverNotLoaded}, config: left, says: []string{
			`devices["local"][0]: unknown whether host "local" has ` + first,
			`counting the GPUs of this host: the driver is not loaded`,
		}},
	} {
		steps = append(steps, resource.TestStep{
			PlanOnly: true,
			PreConfig: func() {
				if test.change != nil {
					l.change(0, test.change)
				}
				l.nvml.Break(test.faults)
			},
			Config:      l.config(theCluster, test.config),
			ExpectError: acceptance.Says(test.says...),
		})
	}
	l.test(steps...)
}
