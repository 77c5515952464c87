package topology

import (
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// The variables by which a member is told its devices: the first is heeded by NVIDIA's container runtime, which lets a
// container have those and no others, the second by CUDA. Both take UUIDs.
const (
	nvidiaDevices = "NVIDIA_VISIBLE_DEVICES"
	cudaDevices   = "CUDA_VISIBLE_DEVICES"
	// noNVIDIADevices takes away what images that bring CUDA ask for by default, which is all devices.
	noNVIDIADevices = "void"
	noCUDADevices   = "-1"
	// gpuMemoryVariable is how much memory of each device a member has asked for, in MiB.
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

// gpuEnv returns what tells a member of the devices that it was assigned; nil where it has none.
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

// validateGPUEnv checks that neither a role with GPUs nor its group sets the variables by which it is told its devices.
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
				ps.Add(level.at.At("env", domain.Key(name)), "Variable of the GPUs", "%s is Trainyard's to set where a role has gpus: role %q gets its devices from pool %q. Leave it out", name, role, request.Pool)
			}
		}
	}
}
