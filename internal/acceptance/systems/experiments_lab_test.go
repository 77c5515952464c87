//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// experiments is a workspace with the modules, in which python3 has NumPy, and a view of the cluster that bypasses
// Terraform.
type experiments struct {
	*acctest.Workspace
	t       *testing.T
	program string
}

func newExperiments(t *testing.T) *experiments {
	t.Helper()
	return newExperimentsOf(t, func() string { return acctest.Build(t, acctest.Provider) })
}

// newExperimentsOf is newExperiments with another provider program.
func newExperimentsOf(t *testing.T, program func() string) *experiments {
	t.Helper()
	folder := acceptance.Python(t, "rl")
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1, as by make test-matrix")
	}
	e := &experiments{t: t, program: program()}
	e.Workspace = acctest.NewWorkspace(t, e.program)
	acceptance.WithModules(e.Workspace)
	e.Env("PATH", folder+":"+os.Getenv("PATH"))
	return e
}

func (e *experiments) engine() engine.Engine {
	e.Helper()
	program := process.Program{File: e.program, Version: "dev"}
	opened, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: e.StateDir}, program)
	if err != nil {
		e.Fatal(err)
	}
	return opened
}

// found returns the sweep "pricing".
func (e *experiments) found() reconcile.Sweep {
	e.Helper()
	found, err := reconcile.Reconciler{Engine: e.engine()}.SweepRuns(e.Context(), "pricing")
	if err != nil {
		e.Fatal(err)
	}
	return found
}

// runs returns the state of the runs of the sweep "pricing".
func (e *experiments) runs() map[string]domain.Run {
	e.Helper()
	return e.found().Runs
}

// counts returns the number of runs in each state.
func (e *experiments) counts() map[domain.RunState]int {
	e.Helper()
	found := e.found()
	return sweep.Summarise(found.Document, found.Spec, found.Runs).Counts
}

// belongsTo changes who has created the sweep.
func (e *experiments) belongsTo(user string) {
	e.Helper()
	document := e.found().Document
	document.By = user
	if _, err := engine.Put(e.Context(), e.engine(), document); err != nil {
		e.Fatal(err)
	}
}

// try runs the command "sweep", and returns its output.
func (e *experiments) try(args ...string) (string, error) {
	e.Helper()
	args = slices.Concat([]string{"sweep"}, args, []string{"--endpoint", e.StateDir})
	output, err := exec.CommandContext(e.Context(), e.program, args...).CombinedOutput()
	return string(output), err
}

// sweep runs the command "sweep", which has to succeed, and returns its output.
func (e *experiments) sweep(args ...string) string {
	e.Helper()
	output, err := e.try(args...)
	if err != nil {
		e.Fatalf("%q: %v\n%s", args, err, output)
	}
	return output
}

// expectListed waits until "sweep ls" has a line with these texts.
func (e *experiments) expectListed(texts ...string) {
	e.Helper()
	acctest.Eventually(e, fmt.Sprintf("a line with %q", texts), func() bool {
		for row := range strings.Lines(e.sweep("ls", "pricing")) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(row, text) }) {
				return true
			}
		}
		return false
	})
}

// line is a line that a run prints while it learns.
type line struct {
	Episode   int  `json:"episode"`
	ResumedAt *int `json:"resumed_at_episode"`
}

// lastLine returns the last line of a run that satisfies a condition.
func (e *experiments) lastLine(key string, with func(line) bool) (last line) {
	e.Helper()
	lines, err := e.engine().Logs(e.Context(), "pricing-"+key+"-0", engine.LogOptions{})
	if err != nil {
		return last // it is between two attempts
	}
	for _, text := range lines {
		var entry line
		if json.Unmarshal([]byte(text), &entry) == nil && with(entry) {
			last = entry
		}
	}
	return last
}

// episode returns the last episode that a run reported.
func (e *experiments) episode(key string) int {
	e.Helper()
	return e.lastLine(key, func(l line) bool { return l.Episode > 0 }).Episode
}

// resumedAt returns the episode at which a run resumed; nil if it started from scratch.
func (e *experiments) resumedAt(key string) *int {
	e.Helper()
	return e.lastLine(key, func(l line) bool { return l.ResumedAt != nil }).ResumedAt
}

// goesOn waits until a run is past an episode.
func (e *experiments) goesOn(key string, episode int) {
	e.Helper()
	acctest.Eventually(e, fmt.Sprintf("%s to be past episode %d", key, episode), func() bool {
		return e.episode(key) > episode
	})
}

// process returns the PID of a run's program.
func (e *experiments) process(key string) (pid int) {
	e.Helper()
	acctest.Eventually(e, "the program of "+key, func() bool {
		for candidate := range acctest.Processes(e, e.StateDir) {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", candidate))
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", candidate))
			of := strings.Contains(string(environ), "TRAINYARD_RUN="+key+"\x00")
			if err == nil && of && strings.HasPrefix(string(name), "python") {
				pid = candidate
			}
		}
		return pid != 0
	})
	return pid
}

// halted reports whether a process is stopped by a signal.
func halted(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(status), "State:\tT")
}
