//go:build linux

package process_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestAccGPUsOfWhatLeaves: GPUs in use by processes that no agent can see are available to the same group or another,
// if the members that have them will leave.
func TestAccGPUsOfWhatLeaves(t *testing.T) {
	w := newWard(t, fakenvml.V100s("dgx", 2)...)
	both := acceptance.Pool("p", w.named(0, 1))
	w.apply(both, trainees(2))
	for n := range w.devices {
		w.devices[n].UsedMiB = 20_000
	}
	w.show()
	w.terraform.Must("plan", "-replace=trainyard_group.job")
	w.configure(w.terraform, theCluster, both, strings.Replace(trainees(2), `= "job"`, `= "other"`, 1))
	w.expectDrift(`~ name = "job" -> "other" # forces replacement`)

	// Without a group, whoever uses them is somebody else.
	w.configure(w.terraform, theCluster, both)
	w.terraform.Must("apply", "-auto-approve")
	w.configure(w.terraform, theCluster, both, trainees(2))
	acceptance.Refuses(w.terraform, acceptance.Says("used by processes that its agent can't see (20000 MiB)"), "plan")
	w.configure(w.terraform, theCluster, both)
}

// TestAccGPUsUnreadable unloads the driver under a member: once the agent has reported that for a while, it is drift,
// until the driver is back.
func TestAccGPUsUnreadable(t *testing.T) {
	const why = "NVIDIA's driver is not loaded: load it (modprobe nvidia; nvidia-smi shows more), and pass its devices to containers"
	w := newWard(t, fakenvml.V100s("dgx", 1)...)
	w.apply(acceptance.Pool("p", w.named(0)), trainees(1))
	w.check(w.changes("+job-worker-0"))
	gone := fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.DriverNotLoaded, "nvmlInit": fakenvml.DriverNotLoaded}
	w.suffers(0, func() { w.nvml.Break(gone) }, why)
	if got, want := w.progress(), (domain.Progress{Phase: domain.PhaseDegraded, Reason: w.uuids(0)[0] +
		" of host local (" + why + "): job-worker-0"}); got != want {
		t.Errorf("the group is %+v, want %+v", got, want)
	}
	w.expectDrift(`"` + w.uuids(0)[0] + `" = "host local: NVIDIA's driver is not loaded`)
	w.suffers(0, func() { w.nvml.Break(nil) }, "")
	w.terraform.ExpectNoChange("with the driver back")
	w.check(w.changes())
}
