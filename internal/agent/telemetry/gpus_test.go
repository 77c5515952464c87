//go:build linux

package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
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

// TestOwnersAreKept: the process table is read for a new process, but not again for known ones.
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

// TestOwnersAfterAFailure: a process is looked up again as long as the process table could not be read, and no longer.
func TestOwnersAfterAFailure(t *testing.T) {
	id, proc := strings.Repeat("a", 64), filepath.Join(t.TempDir(), "proc")
	o := &owners{settings: Settings{Proc: proc}}
	for _, step := range []struct{ groups, want string }{{"", ""}, {"0::/docker/" + id, id}, {"0::/", id}} {
		if step.groups != "" {
			mkdir(t, filepath.Join(proc, "7"))
			if err := os.WriteFile(filepath.Join(proc, "7", "cgroup"), []byte(step.groups), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := o.of(7); got != step.want {
			t.Errorf("with the control groups %q it is of %q, want %q", step.groups, got, step.want)
		}
	}
}

// TestReport: a process that uses a GPU is attributed to an instance by the instance's mark.
func TestReport(t *testing.T) {
	pid := start(t, "mnist-worker-0.1", "echo ready; read end")
	source := func(context.Context) ([]domain.GPU, error) {
		return []domain.GPU{
			{Device: domain.Device{UUID: "GPU-1"}, Processes: []domain.GPUProcess{{PID: pid}, {PID: 1 << 30}}},
		}, nil
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

// TestUnseenProcesses: in a container, a GPU with memory in use and no visible processes may still have some.
func TestUnseenProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		proc    string
		used    int64
		unknown string
	}{
		"in a container": {
			t.TempDir(), 20_000, "the driver doesn't show its processes to an agent in a container",
		},
		"in a container, not in use": {t.TempDir(), domain.UnseenUseMiB, ""},
		"on the host":                {ownProc, 20_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			on := Settings{Proc: test.proc, GPUs: func(context.Context) ([]domain.GPU, error) {
				return []domain.GPU{{MemoryUsedMiB: &test.used, Processes: []domain.GPUProcess{}}}, nil
			}}
			found := on.sampleGPUs(t.Context(), &owners{settings: on}).GPUs[0]
			if found.Unknown != test.unknown || (found.Processes == nil) != (test.unknown != "") {
				t.Errorf("unknown is %q, and the processes %v", found.Unknown, found.Processes)
			}
		})
	}
}

// TestBoot: GPUs are reported with the ID of the host's boot.
func TestBoot(t *testing.T) {
	proc := t.TempDir()
	on := Settings{Proc: proc, GPUs: func(context.Context) ([]domain.GPU, error) { return nil, nil }}
	boot := func() string { return on.sampleGPUs(t.Context(), &owners{settings: on}).Boot }
	if got := boot(); got != "" {
		t.Errorf("on a host without a boot ID, it is %q", got)
	}
	if err := os.MkdirAll(filepath.Join(proc, "sys/kernel/random"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "sys/kernel/random/boot_id"), []byte("5a17c3d2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := boot(); got != "5a17c3d2" {
		t.Errorf("it is %q", got)
	}
}

// TestReportWithoutGPUs: a host without GPUs has no GPUs, rather than unknown ones.
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
			t.Setenv(SysVariable, sys)
			device := filepath.Join(sys, "bus/pci/devices/0000:07:00.0")
			if err := errors.Join(os.MkdirAll(device, 0o700),
				os.MkdirAll(filepath.Join(proc, test.driver), 0o700)); err != nil {
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

// TestUnknownSince: the agent reports since when it can't read GPUs, as long as no read succeeds.
func TestUnknownSince(t *testing.T) {
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "driver/nvidia"), 0o700); err != nil {
		t.Fatal(err)
	}
	var fault error
	on := settings(func(context.Context) ([]domain.GPU, error) { return nil, fault })
	on.Proc = proc
	r := resident(t.Context(), on, "", slog.New(slog.DiscardHandler))
	look := func(err error) domain.HostGPUs {
		fault = err
		r.look(t.Context())
		return r.Report(Interval).GPUs
	}
	if found := look(nil); !found.UnknownSince.IsZero() {
		t.Errorf("what is known is unknown since %s", found.UnknownSince)
	}
	first := look(errors.New("no driver"))
	if first.UnknownSince.IsZero() || !first.UnknownSince.Equal(first.SampledAt) {
		t.Errorf("at the first look of %s, they are unknown since %s", first.SampledAt, first.UnknownSince)
	}
	if next := look(errors.New("no library")); !next.UnknownSince.Equal(first.UnknownSince) ||
		!next.SampledAt.After(first.SampledAt) {
		t.Errorf("at the next look of %s, they are unknown since %s, want %s", next.SampledAt, next.UnknownSince,
			first.UnknownSince)
	}
	look(nil)
	if again := look(errors.New("no driver")); !again.UnknownSince.Equal(again.SampledAt) {
		t.Errorf("once they were known at %s, they are unknown since %s", again.SampledAt, again.UnknownSince)
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(
		`{"host":{"cpus":{"last":1}},"gpus":{"gpus":[{"uuid":"GPU-1","processes":[{"pid":1}]}],"sampled_at":"2026-11-22T00:00:00Z"}}`,
	))
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
	program, neighbour, onPath := filepath.Join(dir, "provider"), filepath.Join(dir, AgentName),
		filepath.Join(elsewhere, AgentName)
	create := func(file string) {
		if err := os.WriteFile(file, nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	// Other programs of that name on this machine are not used, as nobody knows what they are.
	for _, step := range []struct{ made, want string }{{program, program}, {onPath, program}, {neighbour, neighbour}} {
		create(step.made)
		if got := AgentProgram(program); got != step.want {
			t.Errorf("with %s, agents are run from %s", step.made, got)
		}
	}
	t.Chdir(elsewhere)
	create("provider")
	if got := AgentProgram("provider"); got != "./"+AgentName {
		t.Errorf("in its own folder, agents are run from %s", got)
	}
	link := filepath.Join(t.TempDir(), "provider")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	if got := AgentProgram(link); got != neighbour {
		t.Errorf("by a link to the program, agents are run from %s", got)
	}
}

// TestAgentProgramOfAnotherLibrary: an agent that this machine can't run, as it needs another C library, is not used.
func TestAgentProgramOfAnotherLibrary(t *testing.T) {
	for name, test := range map[string]struct {
		loader string
		runs   bool
	}{
		"this machine's": {"", true},
		"another one":    {"-Wl,--dynamic-linker=/lib/no-such-loader.so", false},
		"none":           {"-static", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program, agent, source := filepath.Join(dir, "provider"), filepath.Join(dir, AgentName),
				filepath.Join(dir, "agent.c")
			if err := errors.Join(os.WriteFile(program, nil, 0o600),
				os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			command := exec.Command("gcc", "-o", agent, source) //nolint:gosec // a test's own
			if test.loader != "" {
				command.Args = append(command.Args, test.loader)
			}
			if output, err := command.CombinedOutput(); err != nil {
				t.Fatalf("gcc: %v\n%s", err, output)
			}
			if got := AgentProgram(program); (got == agent) != test.runs {
				t.Errorf("agents are run from %s", got)
			}
		})
	}
}
