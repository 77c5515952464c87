//go:build linux

package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// hostProcesses is the kernel's name for the host's initial PID namespace. In any other, a driver reports process IDs
// that are not valid there.
const hostProcesses = "pid:[4026531836]"

// TestRealGPU runs a CUDA program as a member if this machine has a GPU: the program is found on the GPU that the
// member was given, and attributed to the member.
func TestRealGPU(t *testing.T) {
	if _, err := os.Stat("/dev/nvidiactl"); err != nil {
		t.Skipf("no driver of NVIDIA's runs on this machine: %v", err)
	}
	l := labOf(t, opened{dir: t.TempDir(), cluster: "lab", provider: acctest.ProviderBesideAgent(t)}.open(t))
	local := func() domain.HostGPUs {
		found, err := l.GPUs(t.Context())
		l.must(err)
		return found["local"]
	}
	gpus := local()
	usable := func(gpu domain.GPU) bool { return gpu.Trouble == "" && (gpu.MIG == nil || !*gpu.MIG) }
	n := slices.IndexFunc(gpus.GPUs, usable)
	if n < 0 {
		t.Skipf("this machine has no GPU that a member could have: %+v", gpus)
	}
	if own, err := os.Readlink("/proc/self/ns/pid"); err != nil || own != hostProcesses {
		t.Skipf("processes have other numbers here than on the host (%s, %v): run this there, or in a container with its process table (--pid=host)",
			own, err)
	}
	uuid := gpus.GPUs[n].UUID
	program := filepath.Join(t.TempDir(), "cuda")
	if output, err := exec.Command("gcc", "-O1", "-Wall", "-Werror", "-o", program, "testdata/cuda.c",
		"-ldl").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, output)
	}

	pool := domain.GPUPool{
		Cluster: "lab", Name: "p", Devices: map[string][]string{"local": {uuid}},
		OnForeignProcess: domain.ForeignIgnore,
	}
	_, err := l.PutPool(t.Context(), pool, true, nil)
	l.must(err)
	l.must(l.Update(t.Context(), domain.Group{
		Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Roles: map[string]domain.Role{"worker": {
			Replicas: new(1), GPUs: &domain.GPURequest{Pool: "p"},
			Template: domain.Template{
				Command: []string{program}, Env: map[string]string{"LD_LIBRARY_PATH": os.Getenv("LD_LIBRARY_PATH")},
			},
		}},
	}))
	const member = "job-worker-0"
	l.eventually("the program on "+uuid, func() bool {
		lines, err := l.Logs(t.Context(), member, engine.LogOptions{})
		l.must(err)
		if o := l.member(member); o.Restarts > 0 || o.State.Ended() {
			t.Fatalf("%s is %s (%s): %q", member, o.State, o.LastError, lines)
		}
		return slices.Equal(lines, []string{ready})
	})
	l.eventually(uuid+" to be used by "+member, func() bool {
		now := local().GPUs
		i := slices.IndexFunc(now, func(gpu domain.GPU) bool { return gpu.UUID == uuid })
		return i >= 0 && slices.ContainsFunc(now[i].Processes, func(p domain.GPUProcess) bool {
			return p.Member == member && p.Command == filepath.Base(program) &&
				(p.MemoryMiB == nil || *p.MemoryMiB >= 64)
		})
	})
	for _, gpu := range local().GPUs {
		if gpu.UUID != uuid &&
			slices.ContainsFunc(gpu.Processes, func(p domain.GPUProcess) bool { return p.Member != "" }) {
			t.Errorf("%s, which no member was given, is used by %+v", gpu.UUID, gpu.Processes)
		}
	}
}
