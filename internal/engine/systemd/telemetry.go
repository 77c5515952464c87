package systemd

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Usage returns what the agents report about their hosts, and about the members' processes.
func (e *Engine) Usage(ctx context.Context, window time.Duration) (engine.Usage, error) {
	answers, running, err := e.collect(ctx, window)
	if err != nil {
		return engine.Usage{}, err
	}
	return telemetry.Usage(answers, running), nil
}

// GPUs returns the GPUs that the agents report.
func (e *Engine) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) { return e.gpus(ctx) }

func (e *Engine) readGPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	answers, running, err := e.collect(ctx, 0)
	if err != nil {
		return nil, err
	}
	return telemetry.GPUs(answers, running), nil
}

// collect returns the agents' reports, and what runs. It asks the agents again if a running member is missing from a
// report.
func (e *Engine) collect(
	ctx context.Context, window time.Duration,
) (map[string]telemetry.Answer, telemetry.Running, error) {
	running := telemetry.Running{Noun: "process"}
	p, err := e.whole(ctx)
	if err != nil {
		return nil, running, err
	}
	if running.Observed, err = e.Observe(ctx, ""); err != nil {
		return nil, running, err
	}
	answers := e.reports(ctx, p, telemetry.Query{Window: window})
	if window > 0 && running.Unmeasured(answers) {
		answers = e.reports(ctx, p, telemetry.Query{Window: window, New: true})
	}
	return answers, running, ctx.Err()
}

func (e *Engine) reports(ctx context.Context, p place, q telemetry.Query) map[string]telemetry.Answer {
	answers, failed := askAll(ctx, e, p, relay.Report, q)
	for name, answer := range answers {
		e.explainGPUs(name, &answer.GPUs)
		answers[name] = answer
	}
	for name, err := range failed {
		answers[name] = telemetry.Answer{Why: err.Error()}
	}
	return answers
}
