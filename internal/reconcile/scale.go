package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// Scaling is a change of a role's count that a policy asks for.
type Scaling struct {
	Group, Role string
	// From is the count that the decision was based on, and To the desired one.
	From, To int
	// Remove lists the members to remove, in order. If it has too few, those with the highest indexes follow. Members
	// with an identity, and those that the engine schedules, always go by index.
	Remove []string
	At     time.Time
	Why    string
}

// CountError means that a role's count is not the one that a decision was based on.
type CountError struct {
	Group, Role     string
	Expected, Found int
}

// Error names the role and both counts.
func (e *CountError) Error() string {
	return fmt.Sprintf("role %q of group %q now has a count of %d, not %d", e.Role, e.Group, e.Found, e.Expected)
}

// HeldError means that a group must not be scaled at present.
type HeldError struct{ Why string }

// Error says why.
func (e *HeldError) Error() string { return e.Why }

func held(format string, args ...any) error { return &HeldError{fmt.Sprintf(format, args...)} }

// Scale changes the count of a role whose replicas are not declared. It returns what was done once members were started
// or are gone, without waiting for them to run. It comes as close to the desired count as possible without moving a
// member; short is what prevents the rest, or "".
//
// Nothing changes if an apply holds the group ([*engine.LockedError]), if its count is another ([*CountError]), or if
// it must not be scaled at present ([*HeldError]). After any other error the change may be stored, and the controller
// carries it out, see [Keep].
func (r Reconciler) Scale(ctx context.Context, s Scaling) (done domain.Scaled, short string, err error) {
	doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, s.Group)
	if err != nil {
		return done, "", fmt.Errorf("group %q: %w", s.Group, err)
	}
	holder := r.holder("scaling of group " + s.Group)
	holder.Patience = lockPatience + longestGrace(doc.Spec)
	release, err := r.lockAs(ctx, GroupLock(s.Group), holder)
	if err != nil {
		return done, "", err
	}
	defer func() { err = errors.Join(err, release()) }()

	group, cluster, err := r.scalable(ctx, s)
	if err != nil {
		return done, "", err
	}
	s.At = s.At.UTC().Round(0) // precision of the stored time
	done = domain.Scaled{At: s.At, From: s.From, To: s.From, Why: s.Why}
	if s.To == s.From {
		return done, "", nil
	}
	decision, short, err := r.recount(ctx, s, group, cluster)
	if err != nil || !decision.Document.Scaling {
		return done, short, err
	}
	done = decision.Document.Scaled[s.Role]
	return done, short, r.settle(ctx, decision, group.Observed)
}

// longestGrace is how long a member of a group may take to end.
func longestGrace(g domain.Group) time.Duration {
	var longest domain.Duration
	for _, role := range g.Roles {
		longest = max(longest, role.Grace())
	}
	return time.Duration(longest)
}

// scalable returns the locked group and its cluster, or why the group must not be scaled. It finishes an
// interrupted scaling first.
func (r Reconciler) scalable(ctx context.Context, s Scaling) (group Group, cluster domain.Cluster, err error) {
	if group, err = r.Read(ctx, s.Group); err == nil && group.Document.Scaling {
		if err = r.settle(ctx, group.Decision, group.Observed); err == nil {
			group, err = r.Read(ctx, s.Group)
		}
	}
	if err != nil {
		return group, cluster, err
	}
	lost, err := r.lostHostsOf(ctx, group)
	if err != nil {
		return group, cluster, err
	}
	document, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return group, cluster, withoutCluster(group.Document.Spec, err)
	}
	if err := cmp.Or(roleHeldBack(group.Document, s.Role), group.heldBack(document.Spec.Hosts, lost)); err != nil {
		return group, cluster, err
	}
	if found := group.Document.Counts[s.Role]; found != s.From {
		return group, cluster, &CountError{s.Group, s.Role, s.From, found}
	}
	return group, document.Spec, nil
}

// roleHeldBack returns why a role can't be scaled at all.
func roleHeldBack(doc domain.GroupDocument, name string) error {
	role, found := doc.Spec.Roles[name]
	switch {
	case !found:
		return held("group %q has no role %q", doc.Spec.Name, name)
	case role.Replicas != nil:
		return held("role %q of group %q sets replicas = %d: Terraform manages its count", name, doc.Spec.Name,
			*role.Replicas)
	case !topology.Scalable(doc.Spec, name):
		return held("framework %q takes at most 1 member of role %q, so there is nothing to scale", doc.Spec.Framework,
			name)
	}
	return nil
}

// heldBack returns why no role of the group can be scaled at present.
func (g Group) heldBack(hosts map[string]domain.Host, lost map[string]string) error {
	doc := g.Document
	switch {
	case doc.Applying:
		return held("an apply of group %q is in progress; if it was interrupted, the next apply completes it",
			doc.Spec.Name)
	case g.Progress.Phase.Ended():
		return held("group %q has %s", doc.Spec.Name, g.Progress.Phase)
	}
	troubled := map[string][]string{}
	for _, o := range g.Observed {
		if why, gone := lost[o.Host]; gone && onTroubledHost(o) {
			troubled[why] = append(troubled[why], o.Name)
		}
	}
	for _, m := range g.Members {
		if _, known := hosts[m.Host]; !m.Shared() && !known {
			why := fmt.Sprintf("host %s is no longer in the cluster, and an apply has to move its members", m.Host)
			troubled[why] = append(troubled[why], m.Name)
		}
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(troubled)) {
		reasons = append(reasons, why+": "+domain.Enumerate(troubled[why]))
	}
	if len(reasons) > 0 {
		return &HeldError{strings.Join(reasons, "; ")}
	}
	return nil
}

// recount decides about the group with another count, and stores the decision as a scaling to carry out. It stores
// nothing if no count closer to the desired one is possible.
func (r Reconciler) recount(
	ctx context.Context, s Scaling, group Group, cluster domain.Cluster,
) (d Decision, short string, err error) {
	view := View{Traits: r.Engine.Traits(), Inventory: engine.Inventory{Hosts: cluster.Hosts}}
	var claims []Claim
	if s.To > s.From {
		var release func() error
		if view, claims, release, err = r.viewForMore(ctx, s, group.Document.Spec, cluster); err != nil {
			return d, "", err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	d, count, refusal := nearest(s.From, s.To,
		func(count int) (Decision, error) { return s.decide(view, group.Document, count) })
	if refusal != nil {
		short = claimed(reasonOf(refusal), claims)
	}
	if count == s.From {
		return group.Decision, short, nil
	}
	before := map[string]bool{}
	for _, m := range group.Members {
		before[m.Name] = true
	}
	problems, err := r.Preflight(ctx, d, before)
	if err != nil {
		return d, "", err
	}
	if err := problems.Err(); err != nil {
		return d, "", held("more members of role %q can't run: %s", s.Role, reasonOf(err))
	}

	next := d.Document
	if started := startOf(next, group.Observed); next.StartedAt == nil && !started.IsZero() &&
		d.restarts(group.Decision) {
		next.StartedAt = &started
	}
	next.Scaled = maps.Clone(next.Scaled)
	if next.Scaled == nil {
		next.Scaled = map[string]domain.Scaled{}
	}
	r.say(ctx, next.Spec.Name, "scaling role", slog.String("role", s.Role), slog.Int("from", s.From),
		slog.Int("to", count), slog.String("why", s.Why))
	next.Scaled[s.Role] = domain.Scaled{At: s.At, From: s.From, To: count, Why: s.Why}
	next.Scaling = true
	d.Document, err = engine.Put(ctx, r.Engine, next)
	return d, short, err
}

// viewForMore returns the view for placing further members of a role, with the allocation lock held. The agents report
// their GPUs before that, which may be slow.
func (r Reconciler) viewForMore(
	ctx context.Context, s Scaling, spec domain.Group, cluster domain.Cluster,
) (view View, claims []Claim, release func() error, err error) {
	var found map[string]domain.HostGPUs
	if spec.Roles[s.Role].GPUs != nil {
		if found, err = r.Engine.GPUs(ctx); err != nil {
			return view, nil, nil, err
		}
	}
	if release, err = r.lock(ctx, allocationLock, "allocation for group "+spec.Name); err != nil {
		return view, nil, nil, err
	}
	if view, claims, err = r.viewOfMore(ctx, s, spec, cluster, found); err != nil {
		return view, nil, nil, errors.Join(err, release())
	}
	return view, claims, release, nil
}

// settle carries out a stored scaling, and stores that it is done. Changes from outside are left to the next apply.
func (r Reconciler) settle(ctx context.Context, d Decision, observed []domain.Observed) error {
	changes := slices.DeleteFunc(Diff(d, observed), func(c Change) bool { return c.Action == ActionMend })
	if err := r.carryOut(ctx, d, changes); err != nil {
		return err
	}
	next := d.Document
	next.Scaling, next.Assignments = false, d.places()
	_, err := r.finish(ctx, next)
	return err
}

// leavingRetry is how soon to look again at members that are being removed.
const leavingRetry = 500 * time.Millisecond

// resumeScaling continues a scaling whose controller died. It does not wait for removed members to end, as other groups
// may need something meanwhile.
func (r Reconciler) resumeScaling(ctx context.Context, group Group) (next time.Time, err error) {
	var leaving []string
	for _, change := range Diff(group.Decision, group.Observed) {
		if change.Action == ActionRemove {
			leaving = append(leaving, change.Member)
		}
	}
	if len(leaving) > 0 {
		return time.Now().Add(leavingRetry), r.Engine.Remove(ctx, leaving)
	}
	return time.Time{}, r.settle(ctx, group.Decision, group.Observed)
}
