//go:build linux

package report_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestMain(m *testing.M) { acctest.Main(m, fakenvml.Remove) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// report runs the command, and returns what it prints.
func report(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, append([]string{"report"}, args...)...).CombinedOutput()
	return string(output), err
}

// The file that the command writes shows a real cluster with a GPU and a failing member.
func TestReport(t *testing.T) {
	nvml := fakenvml.New(t)
	nvml.Set(fakenvml.Device{
		UUID: "GPU-a40a40a4-0000-4000-8000-000000000000", Name: "NVIDIA A40", PCIBusID: "00000000:3B:00.0",
		MemoryMiB: 46_068, UsedMiB: 23_034,
		Utilisation: 87, TemperatureC: 63, PowerMW: 212_000,
	})
	program, stateDir := acctest.ProviderWithGPUs(t, nvml), t.TempDir()
	e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: stateDir},
		process.Program{File: program, Version: "dev"})
	must(t, err)
	t.Cleanup(func() { acctest.EndCluster(t, e) })
	spec, _, err := e.Complete(t.Context(), domain.Cluster{Name: "lab", Engine: process.Name})
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	must(t, err)
	must(t, e.StartController(t.Context()))
	end := filepath.Join(t.TempDir(), "end")
	member, delay := acctest.Build(t, acctest.Member), domain.Duration(time.Millisecond)
	role := func(condition domain.Condition, steps ...string) domain.Role {
		return domain.Role{
			Replicas: new(1), Restart: domain.Restart{Condition: condition, Delay: &delay},
			Template: domain.Template{Command: append([]string{member}, steps...)},
		}
	}
	must(t, reconcile.Reconciler{Engine: e}.Update(t.Context(), domain.Group{
		Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Completion: domain.Completion{When: domain.WhenNever}, // otherwise the failure would stop the other member
		Roles: map[string]domain.Role{
			"good": role(domain.RestartAlways, "wait"),
			"poor": role(domain.RestartNever, "print:reading <data>", "until:"+end, "exit:3"),
		},
	}))
	must(t, os.WriteFile(end, nil, 0o600))

	file := filepath.Join(t.TempDir(), "now.html")
	var page string
	acctest.Eventually(t, "the report to show the cluster", func() bool {
		output, err := report(t, program, "--endpoint", stateDir, "-o", file)
		if err != nil || strings.TrimSpace(output) != file {
			t.Fatalf("%v: %s", err, output)
		}
		text, err := os.ReadFile(file)
		must(t, err)
		page = string(text)
		for _, want := range []string{
			">local", "NVIDIA A40", "87 % busy", "22.5 GiB of 45.0 GiB", "not in a pool",
			`job-good-0</th><td class="good">running`, `job-poor-0</th><td class="bad">failed`,
			"exit code 3", "reading &lt;data&gt;",
		} {
			if !strings.Contains(page, want) {
				t.Logf("%q is not there yet", want)
				return false
			}
		}
		return true
	})
	output, err := report(t, program, "--endpoint", stateDir, "-o", "-")
	if err != nil || !strings.HasPrefix(output, "<!DOCTYPE html>") {
		t.Errorf("to standard output it writes %.200q, %v", output, err)
	}
	for _, args := range [][]string{
		{"lab"}, {"--cluster", "other"}, {"-o", filepath.Join(t.TempDir(), "none", "x.html")},
	} {
		if output, err := report(t, program, append([]string{"--endpoint", stateDir}, args...)...); err == nil {
			t.Errorf("%q is taken: %s", args, output)
		}
	}
}
