package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// agentPatience bounds what the agent may take: to open the driver of GPUs that nobody uses takes seconds.
const agentPatience = 30 * time.Second

// GPUs has an agent read those of this machine, which are those of every host of the cluster.
func (e *Engine) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) { return e.gpus(ctx) }

func (e *Engine) readGPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	cluster, err := e.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	members, err := e.membersByInstance(ctx)
	if err != nil {
		return nil, err
	}
	report, err := e.askAgent(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		report.GPUs = domain.HostGPUs{SampledAt: time.Now(), Unknown: err.Error()}
	}
	for _, gpu := range report.GPUs.GPUs {
		for i := range gpu.Processes {
			gpu.Processes[i].Member = members[gpu.Processes[i].Instance]
		}
	}
	found := map[string]domain.HostGPUs{}
	for host := range cluster.Spec.Hosts {
		found[host] = report.GPUs
	}
	return found, nil
}

// membersByInstance returns the names of the members that run, by the marks of their instances.
func (e *Engine) membersByInstance(ctx context.Context) (map[string]string, error) {
	observed, err := e.Observe(ctx, "")
	if err != nil {
		return nil, err
	}
	marks, err := e.instances(observed)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	for i, mark := range marks {
		if mark != "" {
			members[mark] = observed[i].Name
		}
	}
	return members, nil
}

// askAgent runs the agent as a child of this process.
func (e *Engine) askAgent(ctx context.Context) (telemetry.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	program := e.program.File
	if program == "" {
		program = supervisor.Executable()
	}
	var out, complaint bytes.Buffer
	command := exec.CommandContext(ctx, telemetry.AgentProgram(program), "agent", "sample") //nolint:gosec // our own
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.New("it took more than " + agentPatience.String())
		}
		return telemetry.Report{}, fmt.Errorf("the agent did not tell: %w %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return telemetry.ReadReport(out.Bytes())
}
