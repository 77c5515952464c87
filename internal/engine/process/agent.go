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
	// agentPatience bounds what an agent may take that is run for one report: to open the driver of GPUs that nobody
	// uses takes seconds.
	agentPatience = 30 * time.Second
	// residentPatience bounds what the resident one may, and agentArrival what it takes to come to answer, which is
	// looked for every agentLook.
	residentPatience = 10 * time.Second
	agentArrival     = 10 * time.Second
	agentLook        = 50 * time.Millisecond
)

// agentSocket is where the resident agent answers.
func (e *Engine) agentSocket() string { return e.dir.Path("agent.sock") }

// agentProgram is the file that agents are run from; "" where it is that of the residents themselves.
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

// askAgent asks the resident agent for a report. Where none answers that knows the GPUs, as when the cluster has just
// been made, one is run as a child of this process, and measures for a moment; brief is why.
func (e *Engine) askAgent(ctx context.Context, q telemetry.Query) (report telemetry.Report, brief string, err error) {
	resident, err := e.askResident(ctx, q)
	if err == nil && !resident.Starting || ctx.Err() != nil {
		return resident, "", err
	}
	report, failed := e.runAgent(ctx)
	if failed != nil && err == nil {
		return resident, "", nil // which told of all but the GPUs
	}
	why := "the agent has just been started"
	if err != nil {
		why = err.Error()
	}
	return report, "mean, max and p95 are of a moment, not of the window: " + why, failed
}

// askResident asks the resident agent. Nobody else knows of a window: for that, one is waited for that has just been
// ordered.
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

// agentArrives reports whether the resident agent was ordered so lately that it may yet come to answer.
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
			err = errors.New("it took more than " + agentPatience.String())
		}
		if out.Err() != nil {
			err = fmt.Errorf("its report has %w", out.Err())
		}
		return telemetry.Report{}, fmt.Errorf("the agent did not tell: %w %s", err, complaint)
	}
	return telemetry.ReadReport(out.Bytes())
}
