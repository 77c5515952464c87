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

// Sizing is another size of a role's members that a policy asks for.
type Sizing struct {
	Group, Role string
	// To is what members are to request that are started; what is zero is as declared.
	To domain.Resources
	// InPlace is as in [domain.Size].
	InPlace bool
	At      time.Time
	Why     string
}

// Resize has members of a role that are started from now on have another size, and restarts none for it. Members that
// run get it with their next start, be it one by the engine itself, where that takes a specification without restarting
// a member ([engine.Traits.HandsOver]). A size that the members' hosts have no room for is refused ([*HeldError]), as
// is any while an apply holds the group ([*engine.LockedError]), but for the declared one, which is always possible.
//
// It hands over what is stored already, too: whoever stored that may have died before.
func (r Reconciler) Resize(ctx context.Context, s Sizing) (err error) {
	release, err := r.lockAs(ctx, GroupLock(s.Group), r.holder("sizing of group "+s.Group))
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
		return held("an apply of group %q is at work; if it was cut short, the next one finishes it", s.Group)
	}
	if size := doc.Sizes[s.Role]; size.Resources != s.To || size.InPlace != s.InPlace {
		if group.Decision, err = r.storeSize(ctx, s, group); err != nil {
			return err
		}
	}
	if doc.Applying || doc.Scaling || !r.Engine.Traits().HandsOver {
		return nil // whoever goes on with that renders members by the document
	}
	return r.handOver(ctx, s.Role, group)
}

// storeSize stores another size, if it is possible.
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
	r.say(ctx, next.Spec.Name, "size of a role changes", slog.String("role", s.Role), slog.Float64("cpus", s.To.CPUs), slog.Int64("memory_mib", s.To.MemoryMiB), slog.String("why", s.Why))
	if next, err = engine.Put(ctx, r.Engine, next); err != nil {
		return d, err
	}
	document, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return d, withoutCluster(next.Spec, err)
	}
	return Current(r.Engine.Traits(), document.Spec.Hosts, next), nil
}

// roomFor returns a [*HeldError] where members that have a place would have to leave it for their next size, and else
// holds the allocation until it is released.
func (r Reconciler) roomFor(ctx context.Context, group Group, next domain.GroupDocument) (release func() error, err error) {
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
		err = held("there is no room for that: %s", reasonOf(problems.Err()))
	case !maps.Equal(d.Document.Assignments, group.Document.Assignments):
		err = &HeldError{"there is no room for that on the hosts where its members are"}
	default:
		return release, nil
	}
	return nil, errors.Join(err, release())
}

// handOver has the engine start the members of a role by what they are to be now, the next time that it starts them.
func (r Reconciler) handOver(ctx context.Context, role string, group Group) error {
	found := byName(group.Observed)
	var changes []Change
	for i, m := range group.Members {
		if o := found[m.Name]; m.Role == role && o != nil && group.stale(i, o) == "" && o.Live == nil {
			changes = append(changes, Change{Action: ActionMend, Member: m.Name, Index: i, Run: o.Run, Reason: "size changed"})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := r.carryOut(ctx, group.Decision, changes); err != nil {
		return fmt.Errorf("members of role %q could not be handed their size: %w", role, err)
	}
	return nil
}
