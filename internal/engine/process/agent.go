//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

const (
	// agentPatience bounds the run of an agent for a single report: opening the driver of idle GPUs takes seconds.
	agentPatience = 30 * time.Second
	// residentPatience bounds a request to the resident agent, agentArrival the time until a new one answers, and
	// agentLook is how often that is checked.
	residentPatience = 10 * time.Second
	agentArrival     = 10 * time.Second
	agentLook        = 50 * time.Millisecond
)

// agentSocket is the socket of the resident agent.
func (e *Engine) agentSocket() string { return e.dir.Path("agent.sock") }

// agentProgram is the program file of agents; "" if it is the residents' own.
func (e *Engine) agentProgram() string {
	if e.program.Agent != "" {
		return e.program.Agent
	}
	program := e.programFile()
	if agent := telemetry.AgentProgram(program); agent != program {
		return agent
	}
	return ""
}

func (e *Engine) programFile() string {
	if e.program.File != "" {
		return e.program.File
	}
	return supervisor.Executable()
}

// askAgent asks the resident agent for a report. If none answers that knows the GPUs, for example in a new cluster, it
// runs one as a child process that measures only for a moment; brief is the reason.
func (e *Engine) askAgent(ctx context.Context, q telemetry.Query) (report telemetry.Report, brief string, err error) {
	resident, err := e.askResident(ctx, q)
	if err == nil && !resident.Starting || ctx.Err() != nil {
		return resident, "", err
	}
	report, failed := e.runAgent(ctx)
	if failed != nil && err == nil {
		return resident, "", nil // it reported everything but the GPUs
	}
	why := "the agent has just started"
	if err != nil {
		why = err.Error()
	}
	return report, "mean, max and p95 cover only a moment, not the window: " + why, failed
}

// askResident asks the resident agent. Nobody else can report on a window, so for that it waits for one that was just
// started.
func (e *Engine) askResident(ctx context.Context, q telemetry.Query) (telemetry.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, residentPatience)
	defer cancel()
	for {
		report, err := telemetry.Ask(ctx, e.agentSocket(), q)
		if err == nil && !report.Starting || q.Window == 0 || !e.agentArrives() {
			return report, err
		}
		select {
		case <-time.After(agentLook):
		case <-ctx.Done():
			return report, err
		}
	}
}

// agentArrives reports whether the resident agent was started so recently that it may still come up.
func (e *Engine) agentArrives() bool {
	ordered, err := os.Stat(e.dir.Document(statedir.Specs, agentMember))
	return err == nil && time.Since(ordered.ModTime()) < agentArrival
}

func (e *Engine) runAgent(ctx context.Context) (telemetry.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	out, complaint := &bounded.Buffer{Most: bounded.Report}, &bounded.Tail{Most: bounded.Complaint}
	command := exec.CommandContext(ctx, cmp.Or(e.agentProgram(), e.programFile()), append([]string{"agent", "sample"}, e.measured()...)...) //nolint:gosec // our own
	command.Stdout, command.Stderr = out, complaint
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.New("timed out after " + agentPatience.String())
		}
		if out.Err() != nil {
			err = fmt.Errorf("its report has %w", out.Err())
		}
		return telemetry.Report{}, fmt.Errorf("the agent did not report: %w %s", err, complaint)
	}
	return telemetry.ReadReport(out.Bytes())
}
