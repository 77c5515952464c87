//go:build linux

package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// agentVariable makes [TestMain] run this test binary as an agent.
const agentVariable = "TRAINYARD_TEST_AGENT"

// TestWhileDriverHangs: a driver that hangs during initialization delays neither the agent's start nor the metrics of
// its host.
func TestWhileDriverHangs(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	control := fakenvml.New(t)
	control.Set(fakenvml.V100s("host", 1)...)
	control.Break(fakenvml.Faults{"nvmlInit": fakenvml.Hang})
	library, socket := fakenvml.Build(t), filepath.Join(t.TempDir(), "agent.sock")
	start := func() (end func()) {
		agent := exec.Command(program, "--socket", socket) //nolint:gosec // this very test
		agent.Env = append(os.Environ(), agentVariable+"=1", "LD_LIBRARY_PATH="+library,
			fakenvml.Variable+"="+control.Path())
		agent.Stderr = os.Stderr
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		end = sync.OnceFunc(func() {
			_ = agent.Process.Signal(syscall.SIGTERM)
			_ = agent.Wait() // a signal ended it
		})
		t.Cleanup(end)
		return end
	}
	const soon = 10 * time.Second // less than the driver is given to start
	ask := func() (telemetry.Report, error) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		return telemetry.Ask(ctx, socket, telemetry.Query{})
	}
	var report telemetry.Report
	for tries := 1; ; tries++ {
		begun, end := time.Now(), start()
		acctest.Eventually(t, "the agent", func() bool { // its socket is there a moment before it listens
			report, err = ask()
			return err == nil
		})
		// On a machine that was too busy for an answer by then, the driver may have been given up.
		if time.Since(begun) < soon || tries == 10 {
			break
		}
		end()
	}
	if !report.Starting || report.GPUs.Unknown == "" || report.Host.TotalCPUs == 0 {
		t.Errorf("while the driver hangs it reports %+v", report)
	}
	control.Break(nil)
	acctest.Eventually(t, "the GPU", func() bool {
		report, err := ask()
		return err == nil && !report.Starting && len(report.GPUs.GPUs) == 1
	})
}

// TestWithoutAddress: an agent without an address for Prometheus still answers its cluster.
func TestWithoutAddress(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, []string{"--socket", socket, "--metrics", "[2001:db8::/64]:9465"}, io.Discard,
			slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	acctest.Eventually(t, "the agent", func() bool {
		report, err := telemetry.Ask(ctx, socket, telemetry.Query{})
		return err == nil && report.Host.TotalCPUs > 0
	})
}

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		if err := Run(context.Background(), os.Args[1:], os.Stdout, slog.New(slog.DiscardHandler)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := fakenvml.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
