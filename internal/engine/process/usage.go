//go:build linux

package process

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Usage returns what the agent reports of this machine, which is every host of the cluster, and of the members'
// processes.
func (e *Engine) Usage(ctx context.Context, window time.Duration) (engine.Usage, error) {
	answers, running, err := e.collect(ctx, window)
	if err != nil {
		return engine.Usage{}, err
	}
	return telemetry.Usage(answers, running), nil
}

// GPUs returns those of this machine, which are those of every host of the cluster.
func (e *Engine) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) { return e.gpus(ctx) }

func (e *Engine) readGPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	answers, running, err := e.collect(ctx, 0)
	if err != nil {
		return nil, err
	}
	return telemetry.GPUs(answers, running), nil
}

// collect returns the agent's report for each host, and what runs. It asks the agent again if a running member is
// missing from the report.
func (e *Engine) collect(
	ctx context.Context, window time.Duration,
) (map[string]telemetry.Answer, telemetry.Running, error) {
	running := telemetry.Running{Noun: "process"}
	cluster, err := engine.Cluster(ctx, e)
	if err != nil {
		return nil, running, err
	}
	if running.Observed, err = e.Observe(ctx, ""); err != nil {
		return nil, running, err
	}
	ask := func(q telemetry.Query) map[string]telemetry.Answer {
		answer := e.Report(ctx, q)
		answers := map[string]telemetry.Answer{}
		for name := range cluster.Spec.Hosts {
			answers[name] = answer
		}
		return answers
	}
	answers := ask(telemetry.Query{Window: window})
	if window > 0 && running.Unmeasured(answers) {
		answers = ask(telemetry.Query{Window: window, New: true})
	}
	return answers, running, ctx.Err()
}

// Report returns the report of this machine's agent.
func (e *Engine) Report(ctx context.Context, q telemetry.Query) (answer telemetry.Answer) {
	var err error
	if answer.Report, answer.Brief, err = e.askAgent(ctx, q); err != nil {
		answer.Why = err.Error()
	}
	return answer
}
