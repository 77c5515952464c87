//go:build linux

package process_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// ward is a lab with GPUs that fail and recover, used through a Terraform workspace.
type ward struct {
	*gpuLab
	terraform *acctest.Workspace
	// gone are the numbers of the devices that are currently missing.
	gone map[int]bool
}

func newWard(t *testing.T, devices ...fakenvml.Device) *ward {
	t.Helper()
	l := newGPULab(t, devices...)
	w := &ward{l, acctest.NewWorkspace(t, l.provider), map[int]bool{}}
	w.files.Root = w.terraform.StateDir
	return w
}

// apply applies a configuration of these parts.
func (w *ward) apply(parts ...string) {
	w.Helper()
	w.configure(w.terraform, slices.Concat([]string{theCluster}, parts)...)
	w.terraform.Must("apply", "-auto-approve")
}

// expectDrift plans the current configuration, and fails unless the plan has changes and says this. It returns the
// output.
func (w *ward) expectDrift(phrases ...string) string {
	w.Helper()
	output, err := w.terraform.Run("plan", "-detailed-exitcode")
	exit, exited := errors.AsType[*exec.ExitError](err)
	if !exited || exit.ExitCode() != 2 {
		w.Fatalf("a plan with drift: %v\n%s", err, output)
	}
	w.expect(output, phrases...)
	return output
}

// expect fails unless Terraform's output says this, in any order and however its lines are wrapped.
func (w *ward) expect(output string, phrases ...string) {
	w.Helper()
	acceptance.ExpectSaid(w.T, output, phrases...)
}

// suffers makes a device fail or recover, and returns once the pool's document says so; why is "" for a recovery.
func (w *ward) suffers(n int, change func(), why string) {
	w.Helper()
	change()
	acctest.Eventually(w, "the controller to see to "+w.devices[n].UUID, func() bool {
		pools, err := engine.List[domain.GPUPoolDocument](w.Context(), w.engine())
		w.must(err)
		return pools["p"].Trouble[w.devices[n].UUID] == why
	})
}

// show makes the machine show the devices that are not gone.
func (w *ward) show() {
	var there []fakenvml.Device
	for n, device := range w.devices {
		if !w.gone[n] {
			there = append(there, device)
		}
	}
	w.nvml.Set(there...)
}

// inUse returns the number of the device that the first worker of the group "job" has.
func (w *ward) inUse() int {
	w.Helper()
	group, err := engine.Get[domain.GroupDocument](w.Context(), w.engine(), "job")
	w.must(err)
	return slices.IndexFunc(w.devices, func(d fakenvml.Device) bool {
		return domain.DeviceSet(d.UUID) == group.Assignments["job-worker-0"].GPUs
	})
}

// progress returns the phase of the group "job", and the reason.
func (w *ward) progress() domain.Progress {
	w.Helper()
	group, err := reconcile.Reconciler{Engine: w.engine()}.Read(w.Context(), "job")
	w.must(err)
	return group.Progress
}

// restartAgent kills the machine's agent, and waits until another one has read the GPUs, and the controller has
// processed that: it has recorded a change of the idle one.
func (w *ward) restartAgent(other int) {
	w.Helper()
	w.devices[1-other].XIDs = nil // each agent would report it
	w.show()
	for pid, what := range acctest.Processes(w, w.files.Root) {
		if strings.Contains(what, " agent --socket ") {
			// An agent that finds another one running ends by itself.
			if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
				w.must(err)
			}
		}
	}
	acctest.Eventually(w, "another agent", func() bool {
		found, err := w.engine().GPUs(w.Context())
		w.must(err)
		there := found["local"]
		return there.Unknown == "" && there.GPUs[1-other].XID == nil
	})
	for _, failed := range []bool{true, false} {
		why := map[bool]string{true: "rows of its memory could not be remapped: have it replaced"}[failed]
		w.suffers(other, func() { w.devices[other].RowsFailed = failed; w.show() }, why)
	}
}

// trainees is the group "job" of this many workers with a GPU each, and a data source for it.
func trainees(replicas int, first ...string) string {
	return group("job", "command = [local.member]\n roles = {\n"+worker(replicas, "", prints(first...))+"}") + `
data "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.job.name
}
`
}

// TestAccGPUHealth makes a GPU fail in each way, and recover: a plan shows it, an apply moves the member to the spare
// one, and the plan is empty once it works again.
func TestAccGPUHealth(t *testing.T) {
	w := newWard(t, fakenvml.V100s("dgx", 2)...)
	spared := acceptance.Pool("p", w.named(0, 1))
	w.apply(spared, trainees(1))
	w.check(w.changes("+job-worker-0"))
	for name, fault := range map[string]struct {
		change  func(n int)
		recover func(n int)
		why     string
	}{
		"gone from its host": {func(n int) { w.gone[n] = true }, func(n int) { delete(w.gone, n) }, "no longer found"},
		"fallen off the bus": {
			func(n int) { w.devices[n].Faults = fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.IsLost} },
			func(n int) { w.devices[n].Faults = nil }, "fallen off the bus",
		},
		"an error of the driver": {
			// Errors of programs on the other one don't count against it.
			func(n int) {
				w.devices[1-n].XIDs = []int{13, 31, 43, 45, 68, 109}
				w.devices[n].XIDs, w.devices[n].Lost = []int{31, 79}, true
			},
			func(n int) { w.devices[n].Lost = false }, "fallen off the bus (XID 79)",
		},
		"to be reset": {
			func(n int) { w.devices[n].Faults = fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.ResetRequired} },
			func(n int) { w.devices[n].Faults = nil }, "it needs a reset (nvidia-smi --gpu-reset)",
		},
		"no answer": {
			func(n int) { w.devices[n].Faults = fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.Hang} },
			func(n int) { w.devices[n].Faults = nil }, "the driver does not answer",
		},
		"failing remaps": {
			func(n int) { w.devices[n].RowsFailed = true }, func(n int) { w.devices[n].RowsFailed = false },
			"rows of its memory could not be remapped: have it replaced",
		},
		"divided by MIG": {
			func(n int) { w.devices[n].MIG = true }, func(n int) { w.devices[n].MIG = false },
			"it is partitioned by MIG, and pools take whole GPUs; disable MIG (nvidia-smi -mig 0), or leave it out",
		},
	} {
		t.Log(name)
		bad := w.inUse()
		uuid, spare := w.devices[bad].UUID, 1-bad
		w.suffers(bad, func() { fault.change(bad); w.show() }, fault.why)
		if got, want := w.progress(), (domain.Progress{Phase: domain.PhaseDegraded, Reason: uuid +
			" of host local (" + fault.why + "): job-worker-0"}); got != want {
			t.Errorf("the group is %+v, want %+v", got, want)
		}
		w.expectDrift(`"`+uuid+`" = "host local: `+fault.why+`"`,
			`- "job-worker-0" = "`+w.place(bad)+`" } -> (known after apply)`,

			`GPU pool "p" declares GPUs that can't be used: `+uuid+" of host local: "+fault.why,
			"Repair them, or remove them from the pool")
		w.check(w.changes())

		w.terraform.Must("apply", "-auto-approve")
		w.check(w.changes("~job-worker-0"))
		w.check(w.printsGPUs(map[string][3]string{"job-worker-0": {w.devices[spare].UUID, w.devices[spare].UUID, ""}}))
		if got := w.progress(); got.Phase != domain.PhaseRunning {
			t.Errorf("on the spare GPU the group is %+v", got)
		}
		if output := w.expectDrift(`"`+uuid+`" = "host local: `,
			"0 to add, 1 to change"); strings.Contains(output, "job-worker-0") {
			t.Errorf("a member that was moved is planned again:\n%s", output)
		}
		w.configure(w.terraform, theCluster, spared, trainees(2))
		acceptance.Refuses(w.terraform, acceptance.Says("only 1 of them fit", uuid[:12]), "plan")

		w.configure(w.terraform, theCluster, spared, trainees(1))
		w.suffers(bad, func() { fault.recover(bad); w.show() }, "")
		w.terraform.ExpectNoChange("after the GPU recovered: " + name)
	}
	w.apply(spared, trainees(2))
	w.check(w.changes("~job-worker-0", "+job-worker-1")) // they know each other's address
}

// TestAccGPUNeedsReset makes a GPU fail in ways that need a reset: it stays drift, even after a restart of the agent,
// until there are signs of a reset.
func TestAccGPUNeedsReset(t *testing.T) {
	w := newWard(t, fakenvml.V100s("dgx", 2)...)
	w.apply(acceptance.Pool("p", w.named(0, 1)), trainees(1))
	for _, fault := range []struct {
		change, reset func(d *fakenvml.Device)
		why, during   string
	}{
		{
			func(d *fakenvml.Device) { d.XIDs = []int{48} }, func(d *fakenvml.Device) { d.Lost = true },
			"double-bit ECC error (XID 48)", "fallen off the bus",
		},
		{
			func(d *fakenvml.Device) { d.Lost = false; d.XIDs, d.Recovery = []int{62}, new(fakenvml.ResetGPU) },
			func(d *fakenvml.Device) { d.Recovery = new(0) },
			"microcontroller halt (XID 62); it needs a reset (nvidia-smi --gpu-reset)", "",
		},
	} {
		bad := w.inUse()
		w.suffers(bad, func() { fault.change(&w.devices[bad]); w.show() }, fault.why)
		w.restartAgent(1 - bad)
		w.expectDrift(`"` + w.uuids(bad)[0] + `" = "host local: ` + fault.why + `"`)
		w.terraform.Must("apply", "-auto-approve")
		if now := w.inUse(); now != 1-bad {
			t.Errorf("the member is on GPU %d", now)
		}
		w.suffers(bad, func() { fault.reset(&w.devices[bad]); w.show() }, fault.during)
		w.suffers(bad, func() { w.devices[bad].Lost = false; w.show() }, "")
		w.terraform.ExpectNoChange("after the GPU was reset")
	}
}

// TestAccGPUHealthWithoutSpare makes a GPU fail without a spare one: the plan succeeds, and says who has the others.
// Once one is free, the member moves.
func TestAccGPUHealthWithoutSpare(t *testing.T) {
	w := newWard(t, fakenvml.V100s("dgx", 2)...)
	both := acceptance.Pool("p", w.named(0, 1))
	other := group("other",
		"command = [local.member]\n depends_on = [trainyard_group.job]\n roles = {\n"+worker(1, "", prints())+"}")
	w.apply(both, trainees(1), other)
	w.check(w.changes("+job-worker-0", "+other-worker-0"))
	bad := w.inUse()
	uuid := w.devices[bad].UUID
	w.suffers(bad, func() { w.devices[bad].RowsFailed = true; w.show() },
		"rows of its memory could not be remapped: have it replaced")

	stuck := []string{
		`members of role "worker" stay on GPUs that can't be used, as no others are available: ` + uuid +
			" of host local",
		"held by other-worker-0 of group other",
	}
	w.expectDrift(stuck...)
	w.expect(w.terraform.Must("apply", "-auto-approve"), stuck...)
	w.check(w.changes())
	w.expect(w.terraform.Must("state", "show", "data.trainyard_group.job"), `phase = "degraded"`,
		`reason = "`+uuid+" of host local (rows of its memory")
	w.apply(both, trainees(1))
	w.terraform.Must("apply", "-auto-approve") // whichever of the two groups was applied first
	w.check(w.changes("-other-worker-0", "~job-worker-0"))
	if got := w.progress(); got.Phase != domain.PhaseRunning {
		t.Errorf("on the GPU that became free the group is %+v", got)
	}

	w.apply(acceptance.Pool("p", w.named(1-bad)), trainees(1))
	w.terraform.ExpectNoChange("without the GPU that failed")
}

// TestAccGPUHealthBetweenPlanAndApply makes a GPU fail or recover after the plan: the apply does what was planned,
// whether or not that changes the member on it.
func TestAccGPUHealthBetweenPlanAndApply(t *testing.T) {
	w := newWard(t, fakenvml.V100s("dgx", 3)...)
	all := acceptance.Pool("p", w.named(0, 1, 2))
	w.apply(all, trainees(1))
	w.check(w.changes("+job-worker-0"))
	bad := w.inUse()
	fails := func() {
		w.suffers(bad, func() { w.devices[bad].RowsFailed = true; w.show() },
			"rows of its memory could not be remapped: have it replaced")
	}
	recovers := func() { w.suffers(bad, func() { w.devices[bad].RowsFailed = false; w.show() }, "") }
	for _, step := range []struct {
		config string
		before func()
		want   []string
	}{
		{trainees(1) + group("other", waiting("")), fails, []string{"+other-worker-0"}},
		{trainees(1), recovers, []string{"-other-worker-0"}},
		{trainees(1, "print:again"), fails, []string{"~job-worker-0"}},
		{trainees(1, "print:again"), recovers, nil},
	} {
		w.configure(w.terraform, theCluster, all, step.config)
		w.terraform.Must("plan", "-out=saved")
		step.before()
		w.terraform.Must("apply", "saved")
		w.check(w.changes(step.want...))
		if now := w.inUse(); now != bad {
			t.Errorf("the member was moved to GPU %d", now)
		}
	}
	w.terraform.ExpectNoChange("after the GPU recovered")
}
