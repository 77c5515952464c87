package top

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// window is the time over which usage is asked for: that of the last sample.
const window = time.Second

// reading is what was read of a cluster at one moment.
type reading struct {
	cluster  domain.Cluster
	groups   map[string]domain.GroupDocument
	policies map[string]domain.AutoscalingPolicyDocument
	// hooks are those of the policies that are at work.
	hooks map[string]domain.HookCallsDocument
	// untold are the guards of the policies that have never had a value.
	untold   map[string]domain.UntoldGuardsDocument
	observed []domain.Observed
	usage    engine.Usage
	// residents are the states of the controller and the agents.
	residents domain.Residents
	// devices are what is known of GPUs that stays the same, by UUID.
	devices map[string]domain.GPU
	at      time.Time
}

// cluster is what is read of an engine.
type cluster interface {
	engine.Store
	engine.Telemetry
	Observe(ctx context.Context, group string) ([]domain.Observed, error)
	Residents(ctx context.Context) (domain.Residents, error)
}

// source reads a cluster.
type source struct {
	// snapshot returns the cluster as it is at one moment: what several reads of it need is read once.
	snapshot func() cluster
	devices  map[string]domain.GPU
}

func (s *source) read(ctx context.Context) (r reading, err error) {
	snapshot := s.snapshot()
	document, err := engine.Cluster(ctx, snapshot)
	if err != nil {
		return r, err
	}
	r.cluster = document.Spec
	if r.groups, err = engine.List[domain.GroupDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.policies, err = engine.List[domain.AutoscalingPolicyDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.hooks, err = engine.List[domain.HookCallsDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.untold, err = engine.List[domain.UntoldGuardsDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.usage, err = snapshot.Usage(ctx, window); err != nil {
		return r, err
	}
	if r.observed, err = snapshot.Observe(ctx, ""); err != nil {
		return r, err
	}
	if r.residents, err = snapshot.Residents(ctx); err != nil {
		return r, err
	}
	r.devices = s.known(ctx, snapshot, r.usage.GPUs)
	r.at = time.Now()
	return r, nil
}

// known returns what stays the same of GPUs, which is asked for where there is one that was not seen before. It is no
// more than their names: where it can't be told, they are shown without.
func (s *source) known(ctx context.Context, e engine.Telemetry, used map[string]engine.GPUUsage) map[string]domain.GPU {
	for uuid := range used {
		if _, seen := s.devices[uuid]; seen {
			continue
		}
		hosts, err := e.GPUs(ctx)
		if err != nil {
			return s.devices
		}
		s.devices = map[string]domain.GPU{}
		for _, host := range hosts {
			for _, gpu := range host.GPUs {
				s.devices[gpu.UUID] = gpu
			}
		}
		return s.devices
	}
	return s.devices
}
