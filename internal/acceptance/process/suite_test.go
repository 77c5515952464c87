//go:build linux

package process_test

import (
	"os/exec"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance/suite"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

// TestAcc runs what all engines on plain hosts have in common.
func TestAcc(t *testing.T) {
	suite.Run(t, func(t *testing.T, control *fakenvml.Control) suite.Site {
		t.Helper()
		l := openLab(t)
		if control != nil {
			l.provider = acctest.ProviderWithGPUs(t, control)
		}
		return suite.Site{
			Ref:      domain.ClusterRef{Engine: process.Name, Name: "lab"},
			Engines:  engine.Registry{process.Name: process.Driver(l.program())},
			Provider: l.providerBlock(), Cluster: theCluster, Nowhere: "state_dir",
			Host: "local", Address: "127.0.0.1", Port: l.port,
			Open: l.engine, Dir: l.files,
			Shell: func(command string) (string, error) {
				output, err := exec.Command("sh", "-c", command).Output()
				return string(output), err
			},
			PID: func(member string) int { return l.state(member).PID },
			// The shell that starts a member outlives the member's command.
			Kill:  "kill -KILL $(cat /proc/%[1]d/task/%[1]d/children)",
			Alive: func() int { return acctest.Alive(t, l.files.Root, acctest.Build(t, acctest.Member)) },
			CommandOutput: func(command ...string) string {
				output, err := exec.CommandContext(t.Context(), l.program().File,
					append(command, "--endpoint", l.files.Root)...).CombinedOutput()
				l.must(err)
				return string(output)
			},
		}
	})
}
