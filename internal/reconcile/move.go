package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// unplacedRetry is how soon to retry members that no host has room for.
const unplacedRetry = 5 * time.Second

// UnplacedError means that members have lost their hosts and can't be placed elsewhere.
type UnplacedError struct {
	Group   string
	Members []string
	// Hosts say what is wrong with the hosts, such as "host gpu1 is down".
	Hosts []string
	// Cause is why the members can't be placed, with the numbers.
	Cause error
}

// Error names the members, their hosts and the reason.
func (e *UnplacedError) Error() string {
	return fmt.Sprintf("%s, and these members of group %q can't be placed elsewhere: %s: %v",
		strings.Join(e.Hosts, "; "), e.Group, domain.Enumerate(e.Members), e.Cause)
}

// Unwrap returns the cause.
func (e *UnplacedError) Unwrap() error { return e.Cause }

// lostHosts returns the hosts whose members have to move, and why. It asks the engine only if a member
// reports trouble with its host.
func (r Reconciler) lostHosts(
	ctx context.Context, cluster domain.Cluster, observed []domain.Observed,
) (map[string]string, error) {
	if !slices.ContainsFunc(observed, onTroubledHost) {
		return nil, nil
	}
	inventory, err := r.Engine.Inventory(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("reading the hosts of cluster %q: %w", cluster.Name, err)
	}
	return inventory.Lost, nil
}

// LostHosts returns the hosts whose members have to move, and why. It asks the engine only if a member
// reports trouble with its host.
func (r Reconciler) LostHosts(ctx context.Context, observed []domain.Observed) (map[string]string, error) {
	return r.lostHostsOf(ctx, Group{Observed: observed})
}

// lostHostsOf is [Reconciler.lostHosts] for a single group.
func (r Reconciler) lostHostsOf(ctx context.Context, group Group) (map[string]string, error) {
	if !slices.ContainsFunc(group.Observed, onTroubledHost) {
		return nil, nil
	}
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return nil, withoutCluster(group.Document.Spec, err)
	}
	return r.lostHosts(ctx, cluster.Spec, group.Observed)
}

// onTroubledHost reports whether a member that has not ended well has trouble with its host.
func onTroubledHost(o domain.Observed) bool {
	return o.HostTrouble != "" && o.State != domain.StateCompleted && o.State != domain.StateStopped
}

// inPlace returns the observed members without the trouble of hosts that keep their members, such as paused ones.
func inPlace(observed []domain.Observed, lost map[string]string) []domain.Observed {
	seen := slices.Clone(observed)
	for i := range seen {
		if _, gone := lost[seen[i].Host]; !gone {
			seen[i].HostTrouble = ""
		}
	}
	return seen
}

// onLostHosts returns the stranded members: they have not ended, and are assigned to the lost host that they are on.
// moving reports that some are assigned elsewhere already, by a move that was interrupted.
func onLostHosts(d Decision, observed []domain.Observed, lost map[string]string) (stranded []string, moving bool) {
	if len(lost) == 0 {
		return nil, false
	}
	hosts := make(map[string]string, len(d.Members))
	for _, m := range d.Members {
		hosts[m.Name] = m.Host
	}
	for _, o := range regard(d, observed) {
		if _, gone := lost[o.Host]; !gone || o.State.Ended() || hosts[o.Name] == "" {
			continue
		}
		if hosts[o.Name] == o.Host {
			stranded = append(stranded, o.Name)
		} else if o.Run > 0 { // run 0: not started yet, an apply will
			moving = true
		}
	}
	return stranded, moving
}

// move places members of lost hosts on other hosts, and returns the stored decision. A group that restarts as a whole
// does so within its present attempt, as losing a host is not its failure.
func (r Reconciler) move(
	ctx context.Context, group Group, members []string, lost map[string]string,
) (d Decision, err error) {
	r.Planned = nil // on the lost hosts
	err = r.asking(ctx, group.Document.Spec, func(by *gpuReport) error {
		d, err = r.moveBy(ctx, by, group, members, lost)
		return err
	})
	return d, err
}

// moveBy is move with the GPUs that the hosts reported. It returns [errUnreportedGPUs] if they have to be asked first.
func (r Reconciler) moveBy(
	ctx context.Context, by *gpuReport, group Group, members []string, lost map[string]string,
) (d Decision, err error) {
	previous := group.Document
	name := previous.Spec.Name
	release, err := r.lock(ctx, allocationLock, "allocation for group "+name)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, release()) }()

	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return d, withoutCluster(previous.Spec, err)
	}
	view, err := r.View(ctx, cluster.Spec, previous.Spec)
	if err != nil {
		return d, err
	}
	previous.Assignments = maps.Clone(previous.Assignments)
	for _, member := range members {
		delete(previous.Assignments, member)
	}
	view.Groups[name] = previous
	decision, problems, err := r.decide(view, previous.Spec, by.of(view.Inventory.Hosts))
	if err != nil {
		return d, err
	}
	next := group.Document
	if err := problems.Err(); err != nil {
		troubles := map[string]bool{}
		for _, member := range members {
			troubles[lost[next.Assignments[member].Host]] = true
		}
		return d, &UnplacedError{Group: name, Members: members, Hosts: slices.Sorted(maps.Keys(troubles)), Cause: err}
	}
	places := decision.withLeaving(next.Assignments, group.Observed) // an apply may have died
	if maps.Equal(next.Assignments, places) {
		return group.Decision, nil // the hosts are back
	}
	next.Assignments = places
	if started := startOf(next, group.Observed); next.Spec.RestartScope == domain.ScopeGroup && !started.IsZero() {
		next.Resume(started)
	}
	if next, err = engine.Put(ctx, r.Engine, next); err != nil {
		return d, fmt.Errorf("moving members of group %q: %w", name, err)
	}
	return decisionOf(view, next), nil
}
