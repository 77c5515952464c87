package reconcile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// PolicyExistsError means that the role already has another policy. From is the prefix of its import
// ID, see [engine.Traits].
type PolicyExistsError struct{ Cluster, Group, Role, From string }

// Error says what to do about it.
func (e *PolicyExistsError) Error() string {
	return fmt.Sprintf("role %q of group %q in cluster %q already has an autoscaling policy with another "+
		"specification, and a role can have only one; change that one, or import it: terraform import <address> %s",
		e.Role, e.Group, e.Cluster,
		e.From+domain.AutoscalingPolicy{Cluster: e.Cluster, Group: e.Group, Role: e.Role}.ID())
}

// Policy returns the document of a role's policy, or [engine.ErrNotFound].
func (r Reconciler) Policy(ctx context.Context, group, role string) (domain.AutoscalingPolicyDocument, error) {
	policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, r.Engine)
	if err != nil {
		return domain.AutoscalingPolicyDocument{}, err
	}
	doc, found := policies[domain.PolicyKey(group, role)]
	if !found {
		return doc, fmt.Errorf("autoscaling policy %q: %w", domain.PolicyKey(group, role), engine.ErrNotFound)
	}
	return doc, nil
}

// PutPolicy stores the policy of a role, and makes sure that the cluster has a controller to run it. If created is set,
// another existing policy is a [*PolicyExistsError]; one with the same specification is adopted, and one whose removal
// was interrupted is replaced.
func (r Reconciler) PutPolicy(
	ctx context.Context, spec domain.AutoscalingPolicy, created bool,
) (adopted bool, err error) {
	if _, err := engine.Cluster(ctx, r.Engine); err != nil {
		return false, fmt.Errorf("cluster %q: %w", spec.Cluster, err)
	}
	group, err := engine.Get[domain.GroupDocument](ctx, r.Engine, spec.Group)
	if errors.Is(err, engine.ErrNotFound) {
		groups, err := engine.List[domain.GroupDocument](ctx, r.Engine)
		if err != nil {
			return false, err
		}
		return false, UnknownGroup(spec, slices.Sorted(maps.Keys(groups)))
	}
	if err != nil {
		return false, err
	}
	if err := CheckPolicy(r.Engine.Traits(), group.Spec, spec).Err(); err != nil {
		return false, err
	}
	if err := r.Engine.StartController(ctx); err != nil {
		return false, err
	}
	adopted, err = r.storePolicy(ctx, spec, created, group.Counts[spec.Role])
	if created && errors.Is(err, engine.ErrConflict) {
		// Someone else has just created a policy, the same or another one.
		return r.storePolicy(ctx, spec, created, group.Counts[spec.Role])
	}
	return adopted, err
}

// storePolicy stores the policy of a role that has this count. A policy with the same specification is left alone.
func (r Reconciler) storePolicy(
	ctx context.Context, spec domain.AutoscalingPolicy, created bool, count int,
) (adopted bool, err error) {
	stored, err := r.Policy(ctx, spec.Group, spec.Role)
	found := err == nil
	switch {
	case err != nil && !errors.Is(err, engine.ErrNotFound):
		return false, err
	case found && !stored.Ending && stored.Spec.Equal(spec):
		return created, errors.Join(r.putModels(ctx, spec), r.dropModels(ctx, spec.Key(), spec.Models()))
	case found && !stored.Ending && created:
		return false, &PolicyExistsError{spec.Cluster, spec.Group, spec.Role, r.Engine.Traits().ImportFrom}
	case !found:
		stored.Before = count
	}
	if !found || stored.Ending {
		stored.ID = rand.Text()
	}
	if err := r.putModels(ctx, spec); err != nil {
		return false, err
	}
	stored.Spec, stored.Ending = spec, false
	if _, err = engine.Put(ctx, r.Engine, stored); err != nil {
		return false, err
	}
	return false, r.dropModels(ctx, spec.Key(), spec.Models())
}

// EndPolicy removes the policy of a role: it stops deciding, sets the count that on_destroy asks for, and
// deletes the document. If that count is not possible, the policy is removed anyway, and left says why. If an
// apply holds the group, the error is an [*engine.LockedError], and EndPolicy is to be called again. It does
// nothing if there is no policy.
func (r Reconciler) EndPolicy(ctx context.Context, group, role string) (left string, err error) {
	doc, err := r.markEnding(ctx, group, role)
	if errors.Is(err, engine.ErrNotFound) {
		return "", r.dropModels(ctx, domain.PolicyKey(group, role), nil) // left by an interrupted create
	}
	if err != nil {
		return "", err
	}
	if left, err = r.settleCount(ctx, doc); err != nil {
		return "", err
	}
	if err := r.settleSize(ctx, doc); err != nil {
		return "", err
	}
	if err := r.dropModels(ctx, doc.Spec.Key(), nil); err != nil {
		return "", err
	}
	return left, engine.Delete[domain.AutoscalingPolicyDocument](ctx, r.Engine, doc.Spec.Key())
}

// markEnding stops a policy from deciding.
func (r Reconciler) markEnding(ctx context.Context, group, role string) (domain.AutoscalingPolicyDocument, error) {
	for {
		doc, err := r.Policy(ctx, group, role)
		if err != nil || doc.Ending {
			return doc, err
		}
		doc.Ending = true
		if doc, err = engine.Put(ctx, r.Engine, doc); !errors.Is(err, engine.ErrConflict) {
			return doc, err
		}
	}
}

// settleCount sets the count that an ending policy leaves behind. If that is not possible, left says why.
func (r Reconciler) settleCount(ctx context.Context, doc domain.AutoscalingPolicyDocument) (left string, err error) {
	for {
		group, err := engine.Get[domain.GroupDocument](ctx, r.Engine, doc.Spec.Group)
		if errors.Is(err, engine.ErrNotFound) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		from := group.Counts[doc.Spec.Role]
		to := countAtEnd(doc, group)
		if from == to {
			return "", nil
		}
		_, short, err := r.Scale(ctx, Scaling{
			Group: doc.Spec.Group, Role: doc.Spec.Role, From: from, To: to, At: time.Now(),
			Why: fmt.Sprintf("the policy ends, with on_destroy = %q", doc.Spec.EndRule()),
		})
		var (
			locked   *engine.LockedError
			count    *CountError
			held     *HeldError
			problems domain.Problems
		)
		switch {
		case err == nil:
			return short, nil
		case errors.As(err, &held), errors.As(err, &problems):
			return err.Error(), nil
		case errors.As(err, &locked) && locked.Holder.Controller:
			// The controller is still carrying out the policy's last decision.
			select {
			case <-ctx.Done():
				return "", err
			case <-time.After(lockedRetry):
			}
		case !errors.As(err, &count):
			return "", err
		}
	}
}

// settleSize restores the declared size for members of a role that start from now on, as its policy ends.
func (r Reconciler) settleSize(ctx context.Context, doc domain.AutoscalingPolicyDocument) error {
	for {
		group, err := engine.Get[domain.GroupDocument](ctx, r.Engine, doc.Spec.Group)
		if _, moved := group.Sizes[doc.Spec.Role]; errors.Is(err, engine.ErrNotFound) || err == nil && !moved {
			return nil
		}
		if err != nil {
			return err
		}
		err = r.Resize(ctx, Sizing{Group: doc.Spec.Group, Role: doc.Spec.Role})
		if locked, is := errors.AsType[*engine.LockedError](err); !is || !locked.Holder.Controller {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockedRetry):
		}
	}
}

// countAtEnd is the count of a role after its policy is removed. It is the present one unless the policy
// may and should change it.
func countAtEnd(doc domain.AutoscalingPolicyDocument, group domain.GroupDocument) int {
	role, found := group.Spec.Roles[doc.Spec.Role]
	switch rule := doc.Spec.EndRule(); {
	case !found, role.Replicas != nil, doc.Spec.DryRun:
	case rule == domain.OnDestroyRestore:
		return doc.Before
	case rule == domain.OnDestroyMin:
		return doc.Spec.Min
	}
	return group.Counts[doc.Spec.Role]
}

// deletePolicies removes the policies for roles of a group, no matter who declared them: without the group
// they have nothing to scale.
func (r Reconciler) deletePolicies(ctx context.Context, group string) error {
	policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(policies)) {
		if policies[key].Spec.Group != group {
			continue
		}
		if err := engine.Delete[domain.AutoscalingPolicyDocument](ctx, r.Engine, key); err != nil {
			return err
		}
	}
	return r.dropGroupModels(ctx, group)
}
