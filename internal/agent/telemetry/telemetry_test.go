//go:build linux

package telemetry

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// start runs a script as an instance until the test ends, and returns its process's ID once the script says that it is
// ready: during its exec it would have no environment yet.
func start(t testing.TB, instance, script string) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), proctree.InstanceVariable+"="+instance)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is ever written to it: a script that reads from it waits.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the script said %q, %v", line, err)
	}
	return cmd.Process.Pid
}

func TestProcessors(t *testing.T) {
	for name, test := range map[string]struct {
		used, elapsed time.Duration
		want          float64
	}{
		"a rate":                 {3 * time.Second, 2 * time.Second, 1.5},
		"more ticks than time":   {4100 * time.Millisecond, time.Second, 4},
		"counters that ran back": {-time.Millisecond, time.Second, 0},
		"nothing":                {0, time.Second, 0},
		"all":                    {4 * time.Second, time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := processors(test.used, test.elapsed, 4); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestBusyLeavesOutIdleAndStolenTime(t *testing.T) {
	stat := procfs.CPUStat{
		User: 1, Nice: 2, System: 4, IRQ: 8, SoftIRQ: 16, Idle: 32, Iowait: 64, Steal: 128, Guest: 1, GuestNice: 2,
	}
	if got := busy(stat); got != 31*time.Second {
		t.Errorf("%s, want 31s", got)
	}
}

func TestUsedMemoryIsNeverNegative(t *testing.T) {
	for m, want := range map[memory]uint64{{total: 10, available: 4}: 6, {total: 10, available: 11}: 0} {
		if got := m.used(); got != want {
			t.Errorf("%+v: %d, want %d", m, got, want)
		}
	}
}

func TestCapacity(t *testing.T) {
	cpus, memoryMiB, err := Capacity()
	if err != nil {
		t.Fatal(err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	if want := int64(info.Totalram * uint64(info.Unit) >> 20); memoryMiB != want {
		t.Errorf("%d MiB, want %d", memoryMiB, want)
	}
	if cpus != float64(runtime.NumCPU()) {
		t.Errorf("%v CPUs, want %d", cpus, runtime.NumCPU())
	}
}
