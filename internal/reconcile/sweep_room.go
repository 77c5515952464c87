package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// Measured is what the hosts tell of what is free, as far as the runs of some sweeps wait for that.
type Measured struct {
	gpus  map[string]domain.HostGPUs
	usage engine.Usage
}

// Measure asks the hosts what the runs of some sweeps need to know. That may take long, and is done while nobody waits
// for it.
func (r Reconciler) Measure(ctx context.Context, sweeps ...domain.Sweep) (m Measured, err error) {
	if slices.ContainsFunc(sweeps, func(s domain.Sweep) bool { return s.GPUs != nil }) {
		if m.gpus, err = r.Engine.GPUs(ctx); err != nil {
			return m, err
		}
	}
	if slices.ContainsFunc(sweeps, func(s domain.Sweep) bool { return s.Admission.FreeMemory }) {
		m.usage, err = r.Engine.Usage(ctx, engine.ShortestWindow)
	}
	return m, err
}

// RoomForSweeps returns what there is to run on for the runs of sweeps, by what was measured.
func (r Reconciler) RoomForSweeps(ctx context.Context, queues []sweep.Queue, m Measured) (c sweep.Cluster, err error) {
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return c, err
	}
	view := View{Traits: r.Engine.Traits()}
	if view.Inventory, err = r.Engine.Inventory(ctx, cluster.Spec); err != nil {
		return c, err
	}
	if view.Groups, err = engine.List[domain.GroupDocument](ctx, r.Engine); err != nil {
		return c, err
	}
	if m.gpus != nil {
		if view.Pools, err = engine.List[domain.GPUPoolDocument](ctx, r.Engine); err != nil {
			return c, err
		}
	}
	c = siteOf(view)
	occupied := make(map[string]domain.GroupDocument, len(queues))
	for _, q := range queues {
		occupied[q.Spec.Name] = sweep.Occupancy(q.Spec, q.Runs)
	}
	c.Devices = DeviceStates(view.Pools, m.gpus, view.Groups, occupied)
	view.Sweeps, view.Devices = occupied, c.Devices
	if c.Claims, err = r.claimsOnSweeps(ctx, view); err != nil {
		return c, err
	}
	c.FreeGPUMiB, c.FreeMiB = map[string]int64{}, map[string]int64{}
	for _, host := range m.gpus {
		for _, gpu := range host.GPUs {
			if gpu.MemoryFreeMiB != nil {
				c.FreeGPUMiB[gpu.UUID] = *gpu.MemoryFreeMiB
			}
		}
	}
	for name, host := range m.usage.Hosts {
		if host.MemoryMiB.Last != nil {
			c.FreeMiB[name] = host.TotalMemoryMiB - int64(*host.MemoryMiB.Last)
		}
	}
	return c, nil
}

// claimsOnSweeps returns what groups are to get that wait for room, in their turn.
func (r Reconciler) claimsOnSweeps(ctx context.Context, view View) (claims []sweep.Claim, err error) {
	requests, err := engine.List[domain.RoomRequest](ctx, r.Engine)
	if err != nil || len(requests) == 0 {
		return nil, err
	}
	found, err := r.claimsOf(ctx, view, domain.InTurn(requests))
	for _, c := range found {
		claims = append(claims, sweep.Claim{Request: c.Request, Document: c.Decision.Document})
	}
	return claims, err
}

// SweepOutlook returns why the runs of sweeps wait that wait, by the sweeps' names, as the controller would decide now.
func (r Reconciler) SweepOutlook(ctx context.Context) (map[string]string, error) {
	docs, err := engine.List[domain.SweepDocument](ctx, r.Engine)
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	chunks, err := engine.List[domain.SweepRuns](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	records, err := engine.List[domain.SweepRecord](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	parallelism, err := engine.List[domain.SweepParallelism](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	var queues []sweep.Queue
	var specs []domain.Sweep
	for name, doc := range docs {
		spec, missing := sweep.Join(doc, chunks)
		if len(missing) == 0 && !doc.Ending {
			queues = append(queues, sweep.Queue{Document: doc, Spec: spec, Keys: spec.Keys(), Runs: sweep.Remembered(doc, records), Parallelism: parallelism[name]})
			specs = append(specs, spec)
		}
	}
	measured, err := r.Measure(ctx, specs...)
	if err != nil {
		return nil, err
	}
	room, err := r.RoomForSweeps(ctx, queues, measured)
	if err != nil {
		return nil, err
	}
	admission := sweep.Admit(room, queues, time.Now())
	for _, admitted := range admission.Starts {
		if admission.Waits[admitted.Sweep] == "" {
			admission.Waits[admitted.Sweep] = "it is about to start"
		}
	}
	return admission.Waits, nil
}

// Logs returns the end of what a member wrote, as the engine does; of a run of a sweep that has ended, what was kept of
// that.
func (r Reconciler) Logs(ctx context.Context, member string, options engine.LogOptions) ([]string, error) {
	lines, err := r.Engine.Logs(ctx, member, options)
	if !errors.Is(err, engine.ErrNotFound) {
		return lines, err
	}
	docs, listed := engine.List[domain.SweepDocument](ctx, r.Engine)
	if listed != nil {
		return nil, listed
	}
	for name, doc := range docs {
		key := strings.TrimSuffix(strings.TrimPrefix(member, name+"-"), "-0")
		if domain.RunName(name, key) != member {
			continue
		}
		kept, found := engine.Get[domain.SweepLog](ctx, r.Engine, name+"/"+key)
		if errors.Is(found, engine.ErrNotFound) || found == nil && kept.ID != doc.ID {
			continue
		}
		if found != nil {
			return nil, found
		}
		if options.Tail > 0 && len(kept.Lines) > options.Tail {
			kept.Lines = kept.Lines[len(kept.Lines)-options.Tail:]
		}
		return kept.Lines, nil
	}
	return nil, err
}
