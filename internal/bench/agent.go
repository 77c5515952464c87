//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

const (
	// measured is the number of members that the agent measures, of three processes each; watched is for how long.
	measured = 50
	watched  = time.Minute
	// asked is the interval of requests to it, as by the controller, which checks the health of pools.
	asked = 5 * time.Second
	// The bars of an agent: share of a core, and bytes.
	agentCPUBar    = 0.01
	agentMemoryBar = 40e6
)

// agentCost measures what an agent uses to measure a host with GPUs, each used by a member, once a second.
func (b *bench) agentCost(ctx context.Context) (_ []fmt.Stringer, err error) {
	b.say("agent: starting %d members", measured)
	devices := fakenvml.V100s("measured", hostGPUs)
	for i := range measured {
		member := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep infinity & sleep infinity & wait")
		member.Env = append(os.Environ(), fmt.Sprintf("%s=job-worker-%d.1", proctree.InstanceVariable, i))
		member.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := member.Start(); err != nil {
			return nil, err
		}
		defer func() {
			_ = syscall.Kill(-member.Process.Pid, syscall.SIGKILL)
			_ = member.Wait() // it was killed
		}()
		if i < hostGPUs {
			devices[i].Processes = []fakenvml.Process{{PID: member.Process.Pid, MiB: 1000}}
		}
	}
	control, socket := filepath.Join(b.work, "measured"), filepath.Join(b.work, "agent.sock")
	if err := os.WriteFile(control, []byte(fakenvml.Text(devices...)), 0o600); err != nil {
		return nil, err
	}
	agent := exec.CommandContext(ctx, b.gpus.agent, "agent", "--socket", socket)
	agent.Env = append(os.Environ(), "LD_LIBRARY_PATH="+b.gpus.library, fakenvml.Variable+"="+control)
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, agent.Process.Signal(syscall.SIGTERM), agent.Wait()) }()
	report, err := firstReport(ctx, socket)
	if err != nil {
		return nil, err
	}
	if len(report.GPUs.GPUs) != hostGPUs || len(report.Instances) < measured {
		return nil, fmt.Errorf("the agent reports %d GPUs (%s) and %d members", len(report.GPUs.GPUs),
			report.GPUs.Unknown, len(report.Instances))
	}

	b.say("agent: watching it for %s", watched)
	before, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for time.Since(begin) < watched {
		if err := pause(ctx, asked); err != nil {
			return nil, err
		}
		if _, err := telemetry.Ask(ctx, socket, telemetry.Query{}); err != nil {
			return nil, err
		}
	}
	after, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return nil, err
	}
	share := (after - before).Seconds() / time.Since(begin).Seconds()
	process, err := procfs.NewProc(agent.Process.Pid)
	if err != nil {
		return nil, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return nil, err
	}
	t := &table{head: []string{"GPUs", "members", "of a core", "peak memory"}}
	t.add(count(hostGPUs), count(measured), fmt.Sprintf("%.2f %%", 100*share), mebibytes(status.VmHWM))
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("Members have three processes each. The agent is asked every %s. The driver's library is a "+
			"fake one, whose own cost is in it.", asked)),
		note(fmt.Sprintf("Bar: under %.0f %% of a core at a sample a second: %s.", 100*agentCPUBar,
			verdict(share < agentCPUBar))),
		note(fmt.Sprintf("Bar: under 40 MB (%s) of memory: %s.", mebibytes(agentMemoryBar),
			verdict(float64(status.VmHWM) < agentMemoryBar))),
	}, nil
}

// firstReport returns the first report of an agent that was just started.
func firstReport(ctx context.Context, socket string) (telemetry.Report, error) {
	const patience, retry = 30 * time.Second, 100 * time.Millisecond
	for begin := time.Now(); ; {
		report, err := telemetry.Ask(ctx, socket, telemetry.Query{Window: telemetry.Interval})
		if err == nil && len(report.GPUs.GPUs) > 0 || time.Since(begin) > patience {
			return report, err
		}
		if err := pause(ctx, retry); err != nil {
			return telemetry.Report{}, err
		}
	}
}
