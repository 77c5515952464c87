package daemons

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Usage returns the usage that the agents report for their hosts and for the members' containers.
func (e Agents) Usage(ctx context.Context, window time.Duration) (engine.Usage, error) {
	answers, running, err := e.collect(ctx, window)
	if err != nil {
		return engine.Usage{}, err
	}
	return telemetry.Usage(answers, running), nil
}
