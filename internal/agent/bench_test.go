package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// BenchmarkAgent has the agent measure a host with 8 GPUs, each used by a process, and 50 members of three processes. An iteration is a second
// of its life: -benchtime 60x is a minute. It reports what it takes of a processor, in percent, and its peak of memory, in MiB.
func BenchmarkAgent(b *testing.B) {
	var users []int
	for i := range 50 {
		member := exec.Command("/bin/sh", "-c", "sleep infinity & sleep infinity & wait")
		member.Env = append(os.Environ(), fmt.Sprintf("%s=job-worker-%d.1", proctree.InstanceVariable, i))
		member.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := member.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = syscall.Kill(-member.Process.Pid, syscall.SIGKILL)
			_ = member.Wait() // it was killed
		})
		users = append(users, member.Process.Pid)
	}
	devices := fakenvml.V100s("host", 8)
	for i := range devices {
		devices[i].Processes = []fakenvml.Process{{PID: users[i], MiB: 1000}}
	}
	control := fakenvml.New(b)
	control.Set(devices...)

	socket := filepath.Join(b.TempDir(), "agent.sock")
	agent := exec.Command(acctest.BuildAgent(b), "agent", "--socket", socket)
	agent.Env = append(os.Environ(), "LD_LIBRARY_PATH="+fakenvml.Build(b), fakenvml.Variable+"="+control.Path())
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		if err := agent.Wait(); err != nil {
			b.Error(err)
		}
	})
	var report telemetry.Report
	acctest.Eventually(b, "the agent", func() bool {
		var err error
		report, err = telemetry.Ask(b.Context(), socket, telemetry.Interval)
		return err == nil
	})
	if len(report.GPUs.GPUs) != 8 || len(report.Instances) < 50 {
		b.Fatalf("the agent tells of %d GPUs (%s) and %d instances", len(report.GPUs.GPUs), report.GPUs.Unknown, len(report.Instances))
	}

	process, err := procfs.NewProc(agent.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	spent := func() float64 {
		stat, err := process.Stat()
		if err != nil {
			b.Fatal(err)
		}
		return stat.CPUTime()
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	before, begin := spent(), time.Now()
	for b.Loop() {
		<-second.C
	}
	took := time.Since(begin)
	status, err := process.NewStatus()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(100*(spent()-before)/took.Seconds(), "%cpu")
	b.ReportMetric(float64(status.VmHWM)/(1<<20), "MiB")
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := fakenvml.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
