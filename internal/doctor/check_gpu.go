package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// hasGPUs reports whether the host has GPUs of NVIDIA, as far as it knows.
func (h Host) hasGPUs() bool { return h.NVIDIA.Driver != "" || len(h.Details.Devices) > 0 }

// noGPUs is what is found on a host without.
const noGPUs = "has no NVIDIA GPU"

func driver(h Host) verdict {
	devices := count(len(h.Details.Devices), "NVIDIA GPU")
	version := h.NVIDIA.Driver
	switch {
	case !h.hasGPUs():
		return notApplicable(noGPUs)
	case version == "" && h.NVIDIA.SMI:
		return forAll(Problem, "has "+devices+", but the driver is not loaded", h.Sudo("modprobe nvidia"))
	case version == "":
		return forAll(Problem, "has "+devices+", but no driver", h.installDriver())
	case h.Details.SMIFails != "":
		return forAll(Problem, "has driver "+version+", but nvidia-smi fails: "+h.Details.SMIFails, h.Sudo("reboot"))
	case len(h.Details.Models) == 0:
		return ok("has driver " + version + "; without nvidia-smi, its GPUs are not listed")
	}
	models := slices.Sorted(slices.Values(h.Details.Models))
	return ok(fmt.Sprintf("has driver %s, and %s: %s", version, count(len(models), "GPU"),
		strings.Join(slices.Compact(models), ", ")))
}

func toolkit(h Host) verdict {
	switch runtime := h.Details.Docker.Runtime; {
	case !h.hasGPUs():
		return notApplicable(noGPUs)
	case h.Docker.Socket == "":
		return notApplicable("has no Docker Engine that could give GPUs to containers")
	case !h.NVIDIA.Toolkit:
		return swarmProblem(Warning, "lacks the NVIDIA Container Toolkit: containers get no GPUs", h.installToolkit())
	case runtime != "" && runtime != nvidiaRuntime:
		return swarmProblem(OK,
			"has the toolkit, but Docker's default runtime is "+runtime+": members of a Swarm get no GPUs",
			h.nvidiaByDefault())
	case runtime == nvidiaRuntime:
		return ok("has the toolkit, and its runtime is Docker's default")
	}
	return ok("has the toolkit")
}

// nvidiaRuntime is what the toolkit calls its runtime.
const nvidiaRuntime = "nvidia"

// count is a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
