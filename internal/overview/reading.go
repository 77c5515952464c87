// Package overview reads all that people are shown of a cluster at one moment, and says what is wrong with it.
package overview

import (
	"context"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Reading is the state of a cluster at one moment.
type Reading struct {
	Cluster  domain.Cluster
	Groups   map[string]domain.GroupDocument
	Policies map[string]domain.AutoscalingPolicyDocument
	// Hooks are the policies' hook calls that are in progress.
	Hooks map[string]domain.HookCallsDocument
	// Silent are the guards of policies that have never had a value.
	Silent   map[string]domain.SilentGuardsDocument
	Observed []domain.Observed
	Usage    engine.Usage
	// Residents are the states of the controller and the agents.
	Residents domain.Residents
	// Devices are the fixed properties of GPUs, such as their models, by UUID.
	Devices map[string]domain.GPU
	At      time.Time
}

// Cluster is the part of an engine that a Reading is read through.
type Cluster interface {
	engine.Store
	engine.Telemetry
	Observe(ctx context.Context, group string) ([]domain.Observed, error)
	Residents(ctx context.Context) (domain.Residents, error)
}

// Source reads a cluster repeatedly.
type Source struct {
	// Snapshot returns a view of the cluster at one moment, in which data that several reads need is read only once.
	Snapshot func() Cluster
	// Window is the time, up to now, over which usage is measured.
	Window time.Duration

	devices map[string]domain.GPU
}

func (s *Source) Read(ctx context.Context) (r Reading, err error) {
	snapshot := s.Snapshot()
	document, err := engine.Cluster(ctx, snapshot)
	if err != nil {
		return r, err
	}
	r.Cluster = document.Spec
	if r.Groups, err = engine.List[domain.GroupDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.Policies, err = engine.List[domain.AutoscalingPolicyDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.Hooks, err = engine.List[domain.HookCallsDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.Silent, err = engine.List[domain.SilentGuardsDocument](ctx, snapshot); err != nil {
		return r, err
	}
	if r.Usage, err = snapshot.Usage(ctx, s.Window); err != nil {
		return r, err
	}
	if r.Observed, err = snapshot.Observe(ctx, ""); err != nil {
		return r, err
	}
	if r.Residents, err = snapshot.Residents(ctx); err != nil {
		return r, err
	}
	r.Devices = s.known(ctx, snapshot, r.Usage.GPUs)
	r.At = time.Now()
	return r, nil
}

// known returns the properties of GPUs. It asks the engine only about GPUs not seen before, and ignores a failure:
// usage can be shown without them.
func (s *Source) known(ctx context.Context, e engine.Telemetry, used map[string]engine.GPUUsage) map[string]domain.GPU {
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

// GPUName names a GPU by its host and its index there, or by its UUID if the index is unknown.
func (r Reading) GPUName(uuid string) string {
	host := r.Usage.GPUs[uuid].Host
	if device, known := r.Devices[uuid]; known {
		return fmt.Sprintf("%s:%d", host, device.Index)
	}
	return host + ":" + uuid
}
