package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// Measured is what the hosts report as free, as far as waiting runs need to know.
type Measured struct {
	gpus  map[string]domain.HostGPUs
	usage engine.Usage
}

// Measure asks the hosts what the runs of some sweeps need to know. That may be slow, so it is done without any lock.
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

// RoomForSweeps returns the cluster as the runs of sweeps find it, with what was measured.
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

// give returns what a request for room would get.
func (v View) give(request domain.RoomRequest) (Decision, domain.Problems) {
	if request.Sweep {
		return v.giveRuns(request)
	}
	return Decide(v, request.Spec)
}

// giveRuns places the waiting runs of a sweep beside the active ones, the same way as when they start.
func (v View) giveRuns(request domain.RoomRequest) (Decision, domain.Problems) {
	name := request.Spec.Name
	members := make([]domain.Member, request.Runs())
	for i := range members {
		members[i] = domain.Member{
			Name: domain.MemberName(name, domain.WaitingRuns, i), Role: domain.WaitingRuns, Index: i,
		}
	}
	in := v.input(request.Spec, members)
	in.Most = request.Most
	placed, short := placement.Fill(in, false)
	if short.Err() != nil {
		return Decision{}, short
	}
	doc := v.Sweeps[name]
	doc.Assignments, doc.Counts = maps.Clone(doc.Assignments), maps.Clone(doc.Counts)
	roles := maps.Clone(request.Spec.Roles)
	maps.Copy(roles, doc.Spec.Roles)
	if doc.Assignments == nil {
		doc.Assignments, doc.Counts = map[string]domain.Assignment{}, map[string]int{}
	}
	doc.Spec = request.Spec
	doc.Spec.Roles = roles
	maps.Copy(doc.Assignments, placed)
	doc.Counts[domain.WaitingRuns] = len(members)
	return Decision{Document: doc}, nil
}

// requestRoom stores the requests of sweeps whose runs lack room, as long as there are policies that could yield or
// take it, and deletes requests that are no longer wanted. News reports that a request is new or has changed.
func (r Reconciler) requestRoom(
	ctx context.Context, queues []sweep.Queue, wanted map[string]domain.RoomRequest,
) (news bool, err error) {
	if len(wanted) > 0 {
		policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, r.Engine)
		if err != nil {
			return false, err
		}
		if len(policies) == 0 {
			wanted = nil
		}
	}
	stored, err := engine.List[domain.RoomRequest](ctx, r.Engine)
	if err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if known, asks := stored[name]; asks && known.Asks(wanted[name]) {
			continue
		}
		news = true
		if _, err := r.putRequest(ctx, wanted[name]); err != nil {
			return news, err
		}
	}
	for name, request := range stored {
		_, asks := wanted[name]
		held := slices.ContainsFunc(queues, func(q sweep.Queue) bool { return q.Spec.Name == name && q.Held != "" })
		if !request.Sweep || asks || held {
			continue
		}
		if err := engine.Delete[domain.RoomRequest](ctx, r.Engine, name); err != nil {
			return news, err
		}
	}
	return news, nil
}

// WithdrawRoom deletes the requests of all sweeps, as none of their runs waits any more.
func (r Reconciler) WithdrawRoom(ctx context.Context) error {
	_, err := r.requestRoom(ctx, nil, nil)
	return err
}

// claimsOnSweeps returns what the stored requests for room get, in order.
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

// SweepOutlook returns why runs of sweeps wait, by sweep, as the controller would decide now.
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
			queues = append(queues, sweep.Queue{
				Document: doc, Spec: spec, Keys: spec.Keys(), Runs: sweep.Remembered(doc, records),
				Parallelism: parallelism[name],
			})
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
	requests, err := engine.List[domain.RoomRequest](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	admission := sweep.Admit(room, queues, time.Now())
	for name, request := range requests {
		if admission.Waits[name] != "" && request.Answer != "" {
			admission.Waits[name] += "; " + request.Answer
		}
	}
	for _, admitted := range admission.Starts {
		if admission.Waits[admitted.Sweep] == "" {
			admission.Waits[admitted.Sweep] = "it is about to start"
		}
	}
	return admission.Waits, nil
}

// Logs returns the last lines of a member's log. For a run of a sweep that has ended, it returns the stored lines.
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
