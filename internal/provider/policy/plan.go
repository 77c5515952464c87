package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// ValidateConfig checks a policy as far as possible without its group and with unknown values.
func (r *autoscalingPolicyResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resourcekit.ValidateKnown(ctx, req.Config, &resp.Diagnostics,
		func(policy Model, malformed *diag.Diagnostics) domain.Problems {
			spec := policy.Expand(malformed)
			return append(autoscale.Validate(spec), spec.ValidateSources()...)
		})
}

// ModifyPlan checks the planned policy against its planned or stored group and against other policies, so that errors
// show up at plan and not in the middle of an apply.
func (r *autoscalingPolicyResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	if r.Session == nil {
		return
	}
	plans := r.Session.Plans
	var before resourcekit.PolicyAddress
	existed := !req.State.Raw.IsNull()
	if existed {
		var prior Model
		if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
			return
		}
		before = prior.address()
		plans.KnowPolicy(before)
	}
	if req.Plan.Raw.IsNull() {
		plans.PutPolicyLeaving(before)
		return
	}
	for _, name := range []string{"cluster", "group", "role"} {
		if !resourcekit.KnownAttribute(req.Plan.Raw, name) {
			return
		}
	}
	var plan Model
	for name, target := range map[string]any{"cluster": &plan.Cluster, "group": &plan.Group, "role": &plan.Role} {
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root(name), target)...)
	}
	at := plan.address()
	again, err := plannedBefore(ctx, at, req, resp)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, resourcekit.Unable("plan", plan), err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	created := before != at
	if existed && created {
		plans.PutPolicyLeaving(before)
	}
	var spec domain.AutoscalingPolicy
	known := resourcekit.SettledAttributes(req.Config.Raw, "cluster", "timeouts")
	if known {
		resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
		spec = plan.Expand(&resp.Diagnostics)
	}
	if first := plans.PutPolicy(at, spec); !first && !again {
		resourcekit.AddProblems(&resp.Diagnostics, domain.Problems{declaredTwice(plan)})
	}
	if !known || resp.Diagnostics.HasError() {
		return
	}
	found, problems, err := r.find(ctx, plan, spec, created && !again)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, resourcekit.Unable("plan", plan), err)
		return
	}
	resourcekit.AddProblems(&resp.Diagnostics, problems)
	if resp.Diagnostics.HasError() {
		return
	}
	r.Session.WarnOfResidents(ctx, plan.Cluster.Key(), resourcekit.ResidentWarning{
		Concerning: domain.Residents.MissingController, At: path.Root("algorithm"),
		Summary: fmt.Sprintf("No controller for the autoscaling policy of role %q", spec.Role),
		Consequence: fmt.Sprintf("Until the controller runs, role %q of group %q keeps its current size.", spec.Role,
			spec.Group),
	}, &resp.Diagnostics)
	if !created {
		r.warnOfSilent(ctx, "plan", plan, spec, &resp.Diagnostics)
	}
	if !created && !found {
		// An update stores it.
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringUnknown())...)
	}
}

// plannedKey is the key in a policy's private state for the address that it was last planned for.
const plannedKey = "planned"

// plannedBefore reports whether this is the second plan of a policy that is replaced: Terraform passes on the
// private state of the first one.
func plannedBefore(
	ctx context.Context, at resourcekit.PolicyAddress, req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) (bool, error) {
	noted, err := json.Marshal([]string{at.Cluster.Engine, at.Cluster.Name, at.Key})
	if err != nil {
		return false, err
	}
	if !req.State.Raw.IsNull() {
		return false, resourcekit.PrivateError(resp.Private.SetKey(ctx, plannedKey, noted))
	}
	former, diags := req.Private.GetKey(ctx, plannedKey)
	return string(former) == string(noted), resourcekit.PrivateError(diags)
}

// declaredTwice is the problem of a second policy for a role.
func declaredTwice(plan Model) domain.Problem {
	var problems domain.Problems
	problems.Add(domain.Path{"role"}, "Two policies for one role", "another resource of this configuration is "+
		"already the autoscaling policy of role %q of group %q, and a role can have only one; put the metrics of "+
		"both into one",
		plan.Role.ValueString(), plan.Group.ValueString())
	return problems[0]
}

// find checks a policy against its group and other policies. Found reports whether the policy will exist
// without an apply of its own.
func (r *autoscalingPolicyResource) find(
	ctx context.Context, plan Model, spec domain.AutoscalingPolicy, created bool,
) (found bool, problems domain.Problems, err error) {
	at, plans := plan.address(), r.Session.Plans
	reconciler, err := r.Session.Plan(plan.Cluster.Key())
	if err != nil {
		return false, nil, err
	}
	policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, reconciler.Engine)
	if err != nil && !notThereYet(err) {
		return false, nil, err
	}
	stored, found := policies[at.Key]
	if known := plans.Policy(at); found && created && !stored.Ending && !stored.Spec.Equal(spec) && !known.Had &&
		!known.Leaving {
		exists := reconcile.PolicyExistsError{
			Cluster: spec.Cluster, Group: spec.Group, Role: spec.Role, From: reconciler.Engine.Traits().ImportFrom,
		}
		problems.Add(domain.Path{"role"}, "Autoscaling policy already exists", "%v", &exists)
		return found, problems, nil
	}
	group, planned := plans.Spec(resourcekit.ItemAddress{Cluster: at.Cluster, Name: spec.Group})
	// A new problem of a policy that is in the state and that this plan does not change must not
	// prevent its destruction.
	lasts := plans.Policy(at).Had && !planned && (!found || stored.Spec.Equal(spec))
	switch {
	case planned && group.Leaving:
		problems.Add(domain.Path{"group"}, "Group is destroyed", "this plan destroys group %q of cluster %q, and "+
			"without it the policy has nothing to scale; destroy the policy, too", spec.Group, spec.Cluster)
		return found, problems, nil
	case planned && !group.Known:
		tflog.Debug(ctx, "the group is not known yet: the policy will be checked during the apply",
			map[string]any{"cluster": spec.Cluster, "group": spec.Group})
		return found, nil, nil
	case !planned:
		document, err := engine.Get[domain.GroupDocument](ctx, reconciler.Engine, spec.Group)
		if err != nil && !notThereYet(err) {
			return false, nil, err
		}
		if err != nil {
			groups, err := engine.List[domain.GroupDocument](ctx, reconciler.Engine)
			if err != nil && !notThereYet(err) {
				return false, nil, err
			}
			problems = append(problems, reconcile.UnknownGroup(spec, slices.Sorted(maps.Keys(groups))))
			if lasts {
				problems = asWarnings(problems)
			}
			return found, problems, nil
		}
		group.Spec = document.Spec
	}
	problems = reconcile.CheckPolicy(reconciler.Engine.Traits(), group.Spec, spec)
	if lasts {
		problems = asWarnings(problems)
	}
	if problems.Err() == nil && !stored.Spec.Equal(spec) {
		room, err := r.checkRoom(ctx, reconciler, plan.Cluster.Key(), group.Spec, spec)
		if err != nil {
			return false, nil, err
		}
		problems = append(problems, room...)
	}
	// A group that is replaced takes the policies of its predecessor with it.
	return found && !stored.Ending && !group.Anew, problems, nil
}

// asWarnings returns problems as warnings.
func asWarnings(problems domain.Problems) domain.Problems {
	warnings := slices.Clone(problems)
	for i := range warnings {
		warnings[i].Warning = true
	}
	return warnings
}

// checkRoom warns of counts for which the cluster, as it will be, has no room, if that is known.
func (r *autoscalingPolicyResource) checkRoom(
	ctx context.Context, reconciler reconcile.Reconciler, key domain.ClusterRef, group domain.Group,
	spec domain.AutoscalingPolicy,
) (domain.Problems, error) {
	plans := r.Session.Plans
	cluster, planned := plans.Cluster(resourcekit.IDOf(key))
	if !planned {
		document, err := engine.Cluster(ctx, reconciler.Engine)
		if err != nil && !notThereYet(err) {
			return nil, err
		}
		cluster = resourcekit.PlannedCluster{Spec: document.Spec, Settled: err == nil}
	}
	if gpus := group.Roles[spec.Role].GPUs; !cluster.Settled ||
		gpus != nil && plans.PoolIsOpen(resourcekit.IDOf(key), gpus.Pool) {
		return nil, nil
	}
	// What else is in the cluster does not matter, and is not read.
	view := reconcile.View{Traits: reconciler.Engine.Traits()}
	var err error
	if view.Inventory, err = reconciler.Engine.Inventory(ctx, cluster.Spec); err != nil {
		return nil, err
	}
	pools, err := engine.List[domain.GPUPoolDocument](ctx, reconciler.Engine)
	if err != nil && !notThereYet(err) {
		return nil, err
	}
	view.Pools = plans.ForeseePools(resourcekit.IDOf(key), pools)
	return reconcile.CheckRoom(view, group, spec), nil
}

// notThereYet reports whether an error means that the cluster has yet to be created.
func notThereYet(err error) bool {
	return errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrNotFormed)
}
