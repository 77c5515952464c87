//go:build linux

package program_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// TestAgentRenouncesPrivileges: an agent in a container renounces privileges in all threads before it answers any
// request. One that may have to load the GPU driver does not.
func TestAgentRenouncesPrivileges(t *testing.T) {
	for name, test := range map[string]struct{ proc, want string }{
		"in a container": {"/proc/.", "1"},
		"on a host":      {"", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "agent.sock")
			agent := exec.Command(acctest.Build(t, acctest.Provider), "agent", "--socket", socket)
			agent.Env = append(os.Environ(), telemetry.ProcVariable+"="+test.proc)
			must(t, agent.Start())
			t.Cleanup(func() {
				if err := errors.Join(agent.Process.Signal(syscall.SIGTERM), agent.Wait()); err != nil {
					t.Errorf("it ended with %v", err)
				}
			})
			acctest.Eventually(t, "the agent to answer", func() bool {
				_, err := telemetry.Ask(t.Context(), socket, telemetry.Query{})
				return err == nil
			})
			threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(agent.Process.Pid), "task/*/status"))
			must(t, err)
			if len(threads) < 2 {
				t.Fatalf("its threads are %v", threads)
			}
			for _, thread := range threads {
				status, err := os.ReadFile(thread)
				if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
					continue // it has ended since
				}
				must(t, err)
				if !strings.Contains(string(status), "NoNewPrivs:\t"+test.want+"\n") {
					t.Errorf("its thread isn't as it should be, with %s:\n%s", test.want, status)
				}
			}
		})
	}
}
