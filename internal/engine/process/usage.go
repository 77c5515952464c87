package process

import (
	"context"
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// usageInterval is the time between the two readings that make a rate.
const usageInterval = 250 * time.Millisecond

// Usage samples this machine, which is every host of the cluster, and the processes of the members.
func (e *Engine) Usage(ctx context.Context) (engine.Usage, error) {
	cluster, err := e.Cluster(ctx)
	if err != nil {
		return engine.Usage{}, err
	}
	observed, err := e.Observe(ctx, "")
	if err != nil {
		return engine.Usage{}, err
	}
	instances, err := e.instances(observed)
	if err != nil {
		return engine.Usage{}, err
	}
	host, sampled, err := telemetry.Sample(ctx, usageInterval, instances)
	if err != nil {
		return engine.Usage{}, err
	}

	usage := engine.Usage{Hosts: map[string]engine.HostUsage{}, Members: map[string]engine.MemberUsage{}}
	for name := range cluster.Spec.Hosts {
		usage.Hosts[name] = engine.HostUsage{
			CPUs: &host.CPUs, MemoryMiB: &host.MemoryMiB,
			TotalCPUs: float64(host.TotalCPUs), TotalMemoryMiB: host.TotalMemoryMiB, SampledAt: host.SampledAt,
		}
	}
	for i, o := range observed {
		sample, known := sampled[instances[i]]
		if !known {
			usage.Members[o.Name] = engine.MemberUsage{SampledAt: host.SampledAt, Reason: "no process: the member is " + string(o.State)}.Of(o)
			continue
		}
		usage.Members[o.Name] = engine.MemberUsage{CPUs: &sample.CPUs, MemoryMiB: &sample.MemoryMiB, SampledAt: sample.SampledAt}.Of(o)
	}
	return usage, nil
}

// instances returns the marks of the members' present instances, in their order; "" where a member has none.
func (e *Engine) instances(observed []domain.Observed) ([]string, error) {
	marks := make([]string, len(observed))
	for i, o := range observed {
		state, err := statedir.Read[statedir.State](e.dir.Document(statedir.States, o.Name))
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		if state.State == domain.StateRunning {
			marks[i] = state.Instance
		}
	}
	return marks, nil
}
