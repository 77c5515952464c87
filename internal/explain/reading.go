package explain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// reading is what was read about a policy at one moment.
type reading struct {
	cluster, key string
	at           time.Time
	// policy is nil if there is none.
	policy *domain.AutoscalingPolicyDocument
	// hooks are those that are at work, or have yet to be called.
	hooks []domain.HookCall
	// count is the role's; nil if there is no such role.
	count *int
	// entries are the selected ones, newest last. last is the newest of all; nil if there is none.
	entries []autoscale.Entry
	last    *autoscale.Entry
	// unread is the error for unreadable parts of the history; nil if all could be read.
	unread error
}

// read reads everything about a policy.
func read(ctx context.Context, cluster string, e engine.Store, o options, now time.Time) (reading, error) {
	r := reading{cluster: cluster, key: domain.PolicyKey(o.group, o.role), at: now}
	policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, e)
	if err != nil {
		return r, err
	}
	if policy, found := policies[r.key]; found {
		r.policy = &policy
	}
	switch group, err := engine.Get[domain.GroupDocument](ctx, e, o.group); {
	case err == nil:
		if count, found := group.Counts[o.role]; found {
			r.count = &count
		}
	case !errors.Is(err, engine.ErrNotFound):
		return r, err
	}
	switch hooks, err := engine.Get[domain.HookCallsDocument](ctx, e, r.key); {
	case err == nil:
		r.hooks = hooks.Calls
	case !errors.Is(err, engine.ErrNotFound):
		return r, err
	}
	stored, err := engine.Contents(ctx, e, autoscale.HistoryKind)
	if err != nil {
		return r, err
	}
	newest, unread := autoscale.ReadHistory(stored, now, autoscale.Selection{Group: o.group, Role: o.role, Limit: 1})
	if len(newest) > 0 {
		r.last = &newest[0]
	}
	if r.policy == nil && r.last == nil && unread == nil {
		return r, fmt.Errorf("cluster %s has no autoscaling policy %s and no history of one; the policies are %q",
			cluster, r.key, slices.Sorted(maps.Keys(policies)))
	}
	r.entries, r.unread = autoscale.ReadHistory(stored, now, o.selection(now))
	return r, nil
}
