package facts

import (
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// noGPUs is the summary of the problem of an agent that a host can't start.
const noGPUs = "GPUs can't be read"

// CantStart returns why a host can't start a program with these C library requirements, and what to do; "" if it can.
func (f Facts) CantStart(program string, need libc.Need) (why, mend string) {
	here := check{Facts: f}
	upgrade, command := f.upgrade()
	if command != "" {
		upgrade += ": " + command
	}
	switch {
	case need.Loader == "":
		return "", ""
	case f.Glibc != "" && libc.Older(f.Glibc, need.Glibc):
		return fmt.Sprintf("has glibc %s (%s), and %s needs glibc %s or newer", f.Glibc, here.system(), program,
				need.Glibc),
			upgrade + ", or build the program with an older glibc"
	case need.Glibc != "" && f.Glibc == "", !slices.Contains(f.Loaders, need.Loader):
		needs := need.Loader
		if need.Glibc != "" {
			needs += " of glibc " + need.Glibc + " or newer"
		}
		return fmt.Sprintf("has a different C library (%s) than %s needs: the program needs the loader %s, and the "+
			"host's loader is %s",
			here.system(), program, needs, list(f.Loaders)), "use a host with that C library"
	}
	return "", ""
}

// CheckProgram adds the problem of a host that can't start a program that every host needs.
func CheckProgram(problems *domain.Problems, host string, f Facts, program string, need libc.Need) {
	if why, mend := f.CantStart(program, need); why != "" {
		problems.Add(address(host), "Program can't be started",
			"host %q (%s) %s. Build it with CGO_ENABLED=0, so that it needs no C library, or %s",
			host, f.Address, why,
			mend)
	}
}

// CheckAgent warns about a host with GPUs that can't start the agent that reads them.
func CheckAgent(problems *domain.Problems, host string, f Facts, agent string, need libc.Need) {
	if why, mend := f.CantStart(agent, need); why != "" && f.NVIDIA.present() {
		problems.Warn(address(host), noGPUs,
			"host %q (%s) %s. It still reports usage and runs members, but none can use its GPUs. "+
				"To use them, %s", host, f.Address, why, mend)
	}
}

// CheckGPUs adds the problem of a member that requests GPUs of a host that can't start the agent.
func CheckGPUs(problems *domain.Problems, f Facts, spec domain.MemberSpec, agent string, need libc.Need) {
	if why, mend := f.CantStart(agent, need); why != "" {
		problems.Add(domain.Path{"roles", domain.Key(spec.Role), "gpus"}, noGPUs,
			"role %q requests GPUs of host %q, which %s. To use them, %s", spec.Role, spec.Host, why, mend)
	}
}

// present reports whether the host has NVIDIA's driver.
func (n NVIDIA) present() bool { return n.Driver != "" || n.SMI }
