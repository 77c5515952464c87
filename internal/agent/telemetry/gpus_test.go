package telemetry

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestContainerIn(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	inner := strings.Repeat("fedcba9876543210", 4)
	for groups, want := range map[string]string{
		"12:pids:/docker/" + id + "\n1:name=systemd:/docker/" + id: id,
		"0::/system.slice/docker-" + id + ".scope":                 id,
		"0::/docker/" + id + "/docker/" + inner:                    inner,
		"0::/user.slice/user-1000.slice":                           "",
		"":                                                         "",
		"0::/docker/" + id[:40]:                                    "",
		"4:memory:/kubepods/burstable/pod1/" + id + "\n0::/init.scope": id,
	} {
		if got := containerIn(groups); got != want {
			t.Errorf("container in %q is %q, want %q", groups, got, want)
		}
	}
}

func TestContainerOf(t *testing.T) {
	id := strings.Repeat("a", 64)
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "7"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "7", "cgroup"), []byte("0::/docker/"+id), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := containerOf(proc, 7); got != id {
		t.Errorf("container of a process in one is %q", got)
	}
	if got := containerOf(proc, 8); got != "" {
		t.Errorf("container of a process that is gone is %q", got)
	}
}

// The process table is read for a process that was not seen before, and not for those of others again each time.
func TestOwnersAreKept(t *testing.T) {
	on := Settings{Proc: "/proc"}
	listed := []int{os.Getpid(), os.Getppid()}
	on.GPUs = func(context.Context) ([]domain.GPU, error) {
		gpus := make([]domain.GPU, len(listed))
		for i, pid := range listed {
			gpus[i].Processes = []domain.GPUProcess{{PID: pid}}
		}
		return gpus, nil
	}
	o := &owners{settings: on}
	for _, now := range [][]int{listed, listed[1:], nil} {
		listed = now
		on.sampleGPUs(t.Context(), o)
		if diff := cmp.Diff(slices.Sorted(slices.Values(now)), slices.Sorted(maps.Keys(o.known))); diff != "" {
			t.Errorf("of the processes %v are known, -want +got:\n%s", now, diff)
		}
	}
}

// A process that uses a GPU is found to be that of an instance by the instance's mark.
func TestReport(t *testing.T) {
	pid := start(t, "mnist-worker-0.1", "echo ready; read end")
	source := func(context.Context) ([]domain.GPU, error) {
		return []domain.GPU{{Device: domain.Device{UUID: "GPU-1"}, Processes: []domain.GPUProcess{{PID: pid}, {PID: 1 << 30}}}}, nil
	}
	report, err := Once(t.Context(), settings(source))
	if err != nil {
		t.Fatal(err)
	}
	want := []domain.GPUProcess{{PID: pid, Instance: "mnist-worker-0.1"}, {PID: 1 << 30}}
	if diff := cmp.Diff(want, report.GPUs.GPUs[0].Processes); diff != "" || report.GPUs.Unknown != "" {
		t.Errorf("unknown %q; processes (-want +got):\n%s", report.GPUs.Unknown, diff)
	}
	if report.Host.TotalCPUs == 0 || report.SampledAt.IsZero() || report.GPUs.SampledAt.IsZero() {
		t.Errorf("the report is %+v", report)
	}
}

// A host that has no GPU is none of which they are not known.
func TestReportWithoutGPUs(t *testing.T) {
	for name, test := range map[string]struct{ class, vendor, driver, unknown string }{
		"no device":            {},
		"another maker's":      {class: "0x030000", vendor: "0x1002"},
		"a bridge of NVIDIA's": {class: "0x068000", vendor: "0x10de"},
		"a GPU":                {class: "0x030200", vendor: "0x10de", unknown: "no library"},
		"a driver":             {driver: "driver/nvidia", unknown: "no library"},
	} {
		t.Run(name, func(t *testing.T) {
			sys, proc := t.TempDir(), t.TempDir()
			t.Setenv(sysVariable, sys)
			device := filepath.Join(sys, "bus/pci/devices/0000:07:00.0")
			if err := errors.Join(os.MkdirAll(device, 0o700), os.MkdirAll(filepath.Join(proc, test.driver), 0o700)); err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{"vendor": test.vendor, "class": test.class} {
				if err := os.WriteFile(filepath.Join(device, file), []byte(content+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			on := settings(func(context.Context) ([]domain.GPU, error) { return nil, errors.New("no library") })
			on.Proc = proc
			if found := on.sampleGPUs(t.Context(), &owners{settings: on}); found.Unknown != test.unknown {
				t.Errorf("GPUs are not known: %q, want %q", found.Unknown, test.unknown)
			}
		})
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"host":{"cpus":{"last":1}},"gpus":{"gpus":[{"uuid":"GPU-1","processes":[{"pid":1}]}],"sampled_at":"2026-11-22T00:00:00Z"}}`))
	f.Add([]byte(`{"gpus":{"unknown":"no driver"}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(strconv.Quote("x")))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ReadReport(text); err != nil && len(err.Error()) > 4096 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

func TestAgentProgram(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("PATH", elsewhere)
	program, neighbour, onPath := filepath.Join(dir, "provider"), filepath.Join(dir, AgentName), filepath.Join(elsewhere, AgentName)
	create := func(file string) {
		if err := os.WriteFile(file, nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ made, want string }{{program, program}, {onPath, onPath}, {neighbour, neighbour}} {
		create(step.made)
		if got := AgentProgram(program); got != step.want {
			t.Errorf("with %s, agents are run from %s", step.made, got)
		}
	}
	link := filepath.Join(t.TempDir(), "provider")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	if got := AgentProgram(link); got != neighbour {
		t.Errorf("by a link to the program, agents are run from %s", got)
	}
}
