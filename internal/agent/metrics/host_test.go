//go:build linux

package metrics

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestOfThisHost: a real resident exports metrics of its host and of an instance running there, whichever member that
// belongs to.
func TestOfThisHost(t *testing.T) {
	member := exec.Command("sh", "-c", "echo ready; read end")
	member.Env = []string{proctree.InstanceVariable + "=" + t.Name() + ".1"}
	out, err := member.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := member.StdinPipe() // the member lives until this is closed
	if err != nil {
		t.Fatal(err)
	}
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = in.Close(), member.Process.Kill(), member.Wait() })
	// In the middle of its exec, a process has no environment yet.
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	settings := telemetry.Settings{
		Proc: telemetry.HostProc(), Disk: os.TempDir(),
		GPUs: func(context.Context) ([]domain.GPU, error) { return nil, nil },
	}
	resident, err := telemetry.NewResident(t.Context(), settings, "9q3k0wu5bb", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	body := answer(t, Handler(resident.Report, "node1"))
	for _, want := range []string{
		`trainyard_host_cpus_busy{node="node1"} `, `trainyard_host_network_sent_bytes_total{node="node1"} `,
		`trainyard_member_cpus_busy{id="TestOfThisHost.1",node="node1"} `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("%s is missing:%s", want, body)
		}
	}
}
