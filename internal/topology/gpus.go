package topology

import (
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// The variables that hold a member's devices. NVIDIA's container runtime reads the first and gives a container only
// these devices; CUDA reads the second. Both take UUIDs.
const (
	nvidiaDevices = "NVIDIA_VISIBLE_DEVICES"
	cudaDevices   = "CUDA_VISIBLE_DEVICES"
	// noNVIDIADevices overrides the default of images that bring CUDA, which is all devices.
	noNVIDIADevices = "void"
	noCUDADevices   = "-1"
	// gpuMemoryVariable is how much memory of each device a member requests, in MiB.
	gpuMemoryVariable = domain.ReservedPrefix + "GPU_MEMORY_MIB"
)

// usesGPUs reports whether any role of the group asks for GPUs.
func (l *Layout) usesGPUs() bool {
	for _, r := range l.group.Roles {
		if r.GPUs != nil {
			return true
		}
	}
	return false
}

// gpuEnv returns the variables with a member's devices; nil if its role asks for none.
func (l *Layout) gpuEnv(m domain.Member) map[string]string {
	r := l.group.Roles[m.Role]
	if r.GPUs == nil {
		return nil
	}
	env := map[string]string{nvidiaDevices: string(m.GPUs), cudaDevices: string(m.GPUs)}
	if memory := gpuMemory(r); memory > 0 {
		env[gpuMemoryVariable] = strconv.FormatInt(memory, 10)
	}
	return env
}

func gpuCount(r domain.Role) int {
	if r.GPUs == nil {
		return 0
	}
	return r.GPUs.Devices()
}

func gpuMemory(r domain.Role) int64 {
	if r.GPUs == nil {
		return 0
	}
	return r.GPUs.MemoryMiB
}

// validateGPUEnv checks that neither a role with GPUs nor its group sets the variables that hold its devices.
func validateGPUEnv(ps *domain.Problems, g domain.Group, role string) {
	request := g.Roles[role].GPUs
	if request == nil {
		return
	}
	for _, name := range []string{nvidiaDevices, cudaDevices} {
		for _, level := range []struct {
			at  domain.Path
			env map[string]string
		}{{domain.Path{"roles", domain.Key(role)}, g.Roles[role].Env}, {nil, g.Env}} {
			if _, set := level.env[name]; set {
				ps.Add(level.at.At("env", domain.Key(name)), "Reserved GPU variable",
					"%s is set by Trainyard for roles with gpus: role %q gets its devices from pool %q. Leave it out",
					name, role, request.Pool)
			}
		}
	}
}
