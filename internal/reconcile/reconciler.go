package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// Reconciler carries out changes of a cluster on its engine.
type Reconciler struct {
	Engine engine.Engine
	// Logger logs what is done, and why; nil for no log.
	Logger *slog.Logger
	// Controller is set for the cluster's controller, and unset for a Terraform run.
	Controller bool
	// Secrets are the secret values of the group that is applied.
	Secrets domain.SecretValues
	// Planned are the hosts and devices that a plan showed for members of the group that is
	// applied: they get exactly those.
	Planned map[string]domain.Assignment
	// Arriving are the folders of files that the same plan brings to hosts before the planned group or sweep.
	Arriving []string
}

// Group is a group as it was read.
type Group struct {
	Decision
	Observed []domain.Observed
	Progress domain.Progress
	// Trouble is what is wrong with the devices of its pools, by UUID.
	Trouble map[string]string
	// ClusterID is the ID of its cluster, see [domain.Cluster.ID].
	ClusterID string
}

// Read returns a group as it is now, or [engine.ErrNotFound]. It takes a constant number of engine calls.
func (r Reconciler) Read(ctx context.Context, name string) (Group, error) {
	group, err := r.stored(ctx, name)
	if err != nil {
		return Group{}, err
	}
	observed, err := r.Engine.Observe(ctx, name)
	if err != nil {
		return Group{}, err
	}
	group.see(observed)
	return group, nil
}

// settledLooks bounds how often a group is read again because it was scaled meanwhile.
const settledLooks = 10

// ReadSettled is Read for a group that policies may scale: while one does, the document may be older than the observed
// members. It reads again until the two agree, or the difference is not due to scaling.
func (r Reconciler) ReadSettled(ctx context.Context, name string) (group Group, err error) {
	for range settledLooks {
		if group, err = r.Read(ctx, name); err != nil || !topology.AnyScalable(group.Document.Spec) ||
			!group.NeedsApply() {
			return group, err
		}
		doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, name)
		if err != nil || doc.Revision == group.Document.Revision {
			return group, err
		}
	}
	return group, nil
}

// NeedsApply reports whether an apply would change anything about the group as read. A scaling in progress does not
// count.
func (g Group) NeedsApply() bool {
	return g.Document.Applying || !g.Document.Scaling && len(Diff(g.atRest(), g.Observed)) > 0
}

// see sets the observed members, with the trouble of their devices, and the group's progress.
func (g *Group) see(observed []domain.Observed) {
	g.Observed = withGPUTrouble(g.Document, observed, g.Trouble)
	g.Progress = Progress(g.Decision, g.Observed)
}

// Refresh is Read, but if nothing has to change and no GPU is in trouble, it only reads the members' specifications:
// their states and the group's progress are unknown then.
func (r Reconciler) Refresh(ctx context.Context, name string) (Group, error) {
	group, err := r.stored(ctx, name)
	if err != nil {
		return Group{}, err
	}
	if !group.Document.Applying && len(group.inTrouble()) == 0 {
		if group.Observed, err = r.Engine.Specified(ctx, name); err != nil {
			return Group{}, err
		}
		if len(Diff(group.atRest(), group.Observed)) == 0 {
			return group, nil
		}
	}
	return r.Read(ctx, name)
}

// stored returns a group as stored, without observing its members.
func (r Reconciler) stored(ctx context.Context, name string) (Group, error) {
	doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, name)
	if err != nil {
		return Group{}, err
	}
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return Group{}, withoutCluster(doc.Spec, err)
	}
	trouble, err := r.poolTrouble(ctx, doc.Spec)
	if err != nil {
		return Group{}, withoutCluster(doc.Spec, err)
	}
	return Group{
		Decision: Current(r.Engine.Traits(), cluster.Spec.Hosts, doc), Trouble: trouble, ClusterID: cluster.Spec.ID,
	}, nil
}

// withoutCluster returns the error for a group whose cluster document can't be read. It is not [engine.ErrNotFound],
// as the group does exist.
func withoutCluster(group domain.Group, err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return fmt.Errorf("group %q exists, but the document of its cluster %q is missing; apply the cluster alone "+
			"to store it again (-target)", group.Name, group.Cluster)
	}
	return fmt.Errorf("group %q exists, but its cluster %q could not be read: %w", group.Name, group.Cluster, err)
}

// View reads what a decision about a group needs to know. It reads GPU pools only if the group uses GPUs.
func (r Reconciler) View(ctx context.Context, cluster domain.Cluster, group domain.Group) (View, error) {
	inventory, err := r.Engine.Inventory(ctx, cluster)
	if err != nil {
		return View{}, err
	}
	view := View{Traits: r.Engine.Traits(), Inventory: inventory}
	if view.Groups, err = engine.List[domain.GroupDocument](ctx, r.Engine); err == nil && usesGPUs(group) {
		view.Pools, err = engine.List[domain.GPUPoolDocument](ctx, r.Engine)
	}
	if err == nil {
		view.Sweeps, err = r.occupiedBySweeps(ctx)
	}
	isFormed := slices.ContainsFunc(slices.Collect(maps.Values(cluster.Hosts)),
		func(host domain.Host) bool { return host.ID != "" })
	if errors.Is(err, engine.ErrNotFormed) && !isFormed {
		view.Groups, err = map[string]domain.GroupDocument{}, nil // this apply has yet to form the cluster
	}
	view.Stored = maps.Clone(view.occupants())
	return view, err
}

// Preflight returns what would prevent the members of a decision from starting. It asks about one member per role and
// host; members that are kept need no check.
func (r Reconciler) Preflight(ctx context.Context, d Decision, kept map[string]bool) (domain.Problems, error) {
	var specs []domain.MemberSpec
	var problems domain.Problems
	traits, asked := r.Engine.Traits(), map[[2]string]bool{}
	for i, m := range d.Members {
		on := [2]string{m.Role, m.Host}
		if kept[m.Name] || asked[on] {
			continue
		}
		asked[on] = true
		spec, err := d.Layout.Spec(i)
		if err != nil {
			return nil, err
		}
		specs = append(specs, r.withoutArriving(spec))
		problems = append(problems, traits.CheckMember(spec)...)
	}
	if len(specs) > 0 {
		problems = append(problems, traits.CheckResidents(domain.Path{"cluster"})...)
	}
	found, err := r.Engine.Preflight(ctx, specs)
	return append(problems, found...).Distinct(), err
}

const (
	// lockPatience is how long an apply waits for a holder that needs a lock only briefly, unless the holder announces
	// a longer time. There may be a queue of them.
	lockPatience = 45 * time.Second
	lockRetry    = 20 * time.Millisecond
	// lockDoubt is how soon to ask again about a holder that may be dead.
	lockDoubt = time.Second
	// allocationLock guards the choice of hosts and ports, which all groups of a cluster share.
	allocationLock = "allocation"
)

// GroupLock returns the name of the lock that an apply of the group holds.
func GroupLock(group string) string { return "group " + group }

// lock takes a lock. It waits for brief holders: the controller, and anyone who allocates.
func (r Reconciler) lock(ctx context.Context, name, operation string) (func() error, error) {
	return r.lockAs(ctx, name, r.holder(operation))
}

// holder returns the holder for a lock of ours.
func (r Reconciler) holder(operation string) engine.Holder {
	return engine.Holder{
		Who: who(), Process: os.Getpid(), Operation: operation, Since: time.Now(), Controller: r.Controller,
	}
}

// lockAs is [Reconciler.lock] for a given holder.
func (r Reconciler) lockAs(ctx context.Context, name string, holder engine.Holder) (func() error, error) {
	begun, patience := time.Now(), lockPatience
	var last *engine.LockedError
	for {
		bounded, cancel := context.WithDeadline(ctx, begun.Add(patience))
		release, err := r.Engine.Lock(bounded, name, holder)
		cancel()
		if last != nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, last
		}
		var locked *engine.LockedError
		// An unknown holder is about to write down who it is, or to release the lock.
		if !errors.As(err, &locked) ||
			name != allocationLock && !locked.Holder.Controller && locked.Holder.Process != 0 && !locked.Unsure {
			return release, err
		}
		if last != nil && !locked.Holder.Same(last.Holder) {
			begun, patience = time.Now(), lockPatience
		}
		last, patience = locked, max(patience, locked.Holder.Patience)
		retry := lockRetry
		if locked.Unsure {
			retry = lockDoubt
		}
		if time.Since(begun)+retry > patience {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retry):
		}
	}
}

func who() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
