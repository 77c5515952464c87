package domain

import (
	"strings"
	"unicode"
)

// validateResources checks what a role's members request, and that their limits leave room for it.
func validateResources(ps *Problems, at Path, name string, r Role) {
	for _, amount := range []struct {
		at        Path
		does      string
		resources Resources
	}{{at, "requests", r.Resources.Requests()}, {at.At("limits"), "is limited to", r.Resources.Limits}} {
		if cpus := amount.resources.CPUs; cpus != 0 && cpus < minCPUs {
			ps.Add(amount.at.At("cpus"), "Invalid resources",
				"role %q %s %v CPUs; it must be at least %v, and 0 is the same as leaving it out", name, amount.does,
				cpus, minCPUs)
		}
		if memory := amount.resources.MemoryMiB; memory < 0 {
			ps.Add(amount.at.At("memory_mib"), "Invalid resources", "role %q %s %d MiB of memory; it must be 0 or more",
				name, amount.does, memory)
		}
	}
	if r.Resources.Limits.CPUs > 0 && r.Resources.Limits.CPUs < r.Resources.CPUs {
		ps.Add(at.At("limits", "cpus"), "Invalid limit",
			"role %q is limited to %v CPUs, but requests %v; the limit must be at least the request", name,
			r.Resources.Limits.CPUs, r.Resources.CPUs)
	}
	if r.Resources.Limits.MemoryMiB > 0 && r.Resources.Limits.MemoryMiB < r.Resources.MemoryMiB {
		ps.Add(at.At("limits", "memory_mib"), "Invalid limit",
			"role %q is limited to %d MiB of memory, but requests %d; the limit must be at least the request", name,
			r.Resources.Limits.MemoryMiB, r.Resources.MemoryMiB)
	}
}

// minCPUs is the smallest CPU limit that a cgroup can have.
const minCPUs = 0.01

// validatePort checks the first port of a role's members.
func validatePort(ps *Problems, at Path, r Role) {
	if r.Port != nil && (*r.Port < 1 || *r.Port > 65535) {
		ps.Add(at, "Invalid port", "must be between 1 and 65535, got %d", *r.Port)
	}
}

// nodeLabelPrefix begins the labels of nodes in Docker Swarm's placement preferences.
const nodeLabelPrefix = "node.labels."

// validateSpreadBy rejects what is easily mistaken for the name of a label. Labels of hosts may have any other name.
func validateSpreadBy(ps *Problems, at Path, label string) {
	name, value, isPair := strings.Cut(label, "=")
	own, isNodes := strings.CutPrefix(name, nodeLabelPrefix)
	switch {
	case isPair:
		ps.Add(at, "Invalid label", "%q is a label with a value; spread_by takes only the name: %q. To place members "+
			"only on hosts with that value, set labels = { %s = %q }",
			label, own, own, value)
	case isNodes:
		ps.Add(at, "Invalid label", "%q is how Docker refers to a node label; spread_by takes only the name: %q", label,
			own)
	case strings.ContainsFunc(label, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		ps.Add(at, "Invalid label", "%q is not a valid label name: spaces and control characters are not allowed",
			label)
	}
}

func validateUpdate(ps *Problems, at Path, u Update) {
	if u.Parallelism < 0 {
		ps.Add(at.At("parallelism"), "Invalid number of members",
			"must be 1 or more, or 0 to change all members at once, got %d", u.Parallelism)
	}
	notNegative(ps, at.At("delay"), u.Delay)
	oneOf(ps, at.At("on_failure"), "failure action", u.OnFailure, OnFailures)
}

// validateGPURequest checks what a role asks of a GPU pool, as far as that is possible without the pool.
func validateGPURequest(ps *Problems, at Path, role string, request *GPURequest) {
	if request == nil {
		return
	}
	CheckName(ps, at.At("pool"), "GPU pool", request.Pool)
	if n := request.Devices(); n < 1 {
		ps.Add(at.At("count"), "Invalid number of GPUs", "must be 1 or more, got %d. Leave gpus out (null) for no GPUs",
			n)
	}
	if request.MemoryMiB < 0 {
		ps.Add(at.At("memory_mib"), "Invalid GPU memory", "role %q asks for %d MiB on each GPU; it must be 1 or more",
			role, request.MemoryMiB)
	}
}
