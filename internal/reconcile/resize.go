package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Sizing is a change of the size of a role's members that a policy asks for.
type Sizing struct {
	Group, Role string
	// To is what members request when they start; zero fields are as declared.
	To domain.Resources
	// InPlace is as in [domain.Size].
	InPlace bool
	At      time.Time
	Why     string
}

// Resize changes the size of members of a role that start from now on, and restarts none. If the engine can take a
// specification without a restart ([engine.Traits.HandsOver]), running members get it with their next start, even one
// by the engine itself.
//
// It returns an [*engine.LockedError] while an apply holds the group. It returns a [*HeldError] if the members' hosts
// have no room for the size, or if an interrupted apply has yet to be finished; the declared size is never refused so.
//
// A size that is stored already is handed over again, as whoever stored it may have died before.
func (r Reconciler) Resize(ctx context.Context, s Sizing) (err error) {
	release, err := r.lockAs(ctx, GroupLock(s.Group), r.holder("resize of group "+s.Group))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()

	group, err := r.Read(ctx, s.Group)
	if err != nil {
		return err
	}
	doc := group.Document
	declared := s.To == domain.Resources{}
	switch _, found := doc.Spec.Roles[s.Role]; {
	case !found && declared:
		return nil
	case !found:
		return held("group %q has no role %q", s.Group, s.Role)
	case doc.Applying && !declared:
		return held("an apply of group %q is in progress; if it was interrupted, the next apply completes it", s.Group)
	}
	if size := doc.Sizes[s.Role]; size.Resources != s.To || size.InPlace != s.InPlace {
		if group.Decision, err = r.storeSize(ctx, s, group); err != nil {
			return err
		}
	}
	if doc.Applying || doc.Scaling || !r.Engine.Traits().HandsOver {
		return nil // whoever finishes that renders members from the document
	}
	return r.handOver(ctx, s.Role, group)
}

// storeSize stores a size if there is room for it.
func (r Reconciler) storeSize(ctx context.Context, s Sizing, group Group) (d Decision, err error) {
	next := group.Document
	next.Sizes = maps.Clone(next.Sizes)
	if delete(next.Sizes, s.Role); s.To != (domain.Resources{}) {
		if next.Sizes == nil {
			next.Sizes = map[string]domain.Size{}
		}
		next.Sizes[s.Role] = domain.Size{Resources: s.To, InPlace: s.InPlace, At: s.At.UTC().Round(0), Why: s.Why}
	}
	before, now := group.Document.Sized().Roles[s.Role].Resources, next.Sized().Roles[s.Role].Resources
	if s.To != (domain.Resources{}) && (now.CPUs > before.CPUs || now.MemoryMiB > before.MemoryMiB) {
		release, err := r.roomFor(ctx, group, next)
		if err != nil {
			return d, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	r.say(ctx, next.Spec.Name, "resizing role", slog.String("role", s.Role), slog.Float64("cpus", s.To.CPUs),
		slog.Int64("memory_mib", s.To.MemoryMiB), slog.String("why", s.Why))
	if next, err = engine.Put(ctx, r.Engine, next); err != nil {
		return d, err
	}
	document, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return d, withoutCluster(next.Spec, err)
	}
	return Current(r.Engine.Traits(), document.Spec.Hosts, next), nil
}

// roomFor returns a [*HeldError] if the next size would make members move; otherwise it returns with
// the allocation lock held.
func (r Reconciler) roomFor(
	ctx context.Context, group Group, next domain.GroupDocument,
) (release func() error, err error) {
	document, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return nil, withoutCluster(next.Spec, err)
	}
	if release, err = r.lock(ctx, allocationLock, "allocation for group "+next.Spec.Name); err != nil {
		return nil, err
	}
	view, err := r.View(ctx, document.Spec, next.Spec)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	view.Sizes, view.Devices = next.Sizes, lostDevices(troubleIn(view.Pools))
	d, problems := Decide(view, next.Spec)
	switch {
	case problems.Err() != nil:
		err = held("no room for that: %s", reasonOf(problems.Err()))
	case !maps.Equal(d.Document.Assignments, group.Document.Assignments):
		err = &HeldError{"no room for that on the hosts of its members"}
	default:
		return release, nil
	}
	return nil, errors.Join(err, release())
}

// handOver gives the engine the new specifications of a role's members, for the next time it starts them.
func (r Reconciler) handOver(ctx context.Context, role string, group Group) error {
	found := byName(group.Observed)
	var changes []Change
	for i, m := range group.Members {
		if o := found[m.Name]; m.Role == role && o != nil && group.stale(i, o) == "" && o.Live == nil {
			changes = append(changes,
				Change{Action: ActionMend, Member: m.Name, Index: i, Run: o.Run, Reason: "size changed"})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := r.carryOut(ctx, group.Decision, changes); err != nil {
		return fmt.Errorf("handing members of role %q their size: %w", role, err)
	}
	return nil
}
