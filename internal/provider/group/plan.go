package group

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// notChecked are the attributes that checking and laying out a group does not need.
var notChecked = []string{"id", "triggers", "members", "placements", "cluster_spec", "timeouts"}

// ValidateConfig checks a group as far as possible without its cluster and with unknown values.
func (r *groupResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resourcekit.ValidateKnown(ctx, req.Config, &resp.Diagnostics,
		func(group Model, malformed *diag.Diagnostics) domain.Problems {
			return topology.Validate(group.expand(malformed))
		})
}

// ModifyPlan decides what the planned group will be, so that errors show up at plan and not in the middle of an apply.
// If something that the decision needs is unknown, the members are known after the apply.
func (r *groupResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	if r.Session == nil {
		return
	}
	before, existed := resourcekit.AddressIn(ctx, req.State, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.Session.Plans.PutLeaving(before.Cluster, before.Name)
		return
	}
	if !resourcekit.SettledAttributes(req.Plan.Raw, notChecked...) {
		if resourcekit.KnownAttribute(req.Plan.Raw, "cluster") && resourcekit.KnownAttribute(req.Plan.Raw, "name") {
			planned := resourcekit.AddressOf(ctx, req.Plan, &resp.Diagnostics)
			if existed && before != planned {
				r.Session.Plans.PutLeaving(before.Cluster, before.Name)
			}
			r.Session.Plans.PutSpec(planned, resourcekit.PlannedSpec{Anew: before != planned})
			r.planUnknown(ctx, req.Plan, before != planned, &resp.Diagnostics)
		}
		return
	}
	var plan Model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	spec := plan.expand(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	planned := resourcekit.ItemAddress{Cluster: resourcekit.IDOf(plan.Cluster.Key()), Name: spec.Name}
	created := before != planned
	if existed && created {
		r.Session.Plans.PutLeaving(before.Cluster, before.Name)
	}
	r.Session.Plans.PutSpec(planned, resourcekit.PlannedSpec{Spec: spec, Known: true, Anew: created})
	found := refreshed{present: plan.Members}
	if !created {
		found = refreshedGroup(ctx, plan, req, &resp.Diagnostics)
	}
	decision, known, ok := r.decide(ctx, plan.Cluster.Key(), proposal{spec: spec, created: created}, found,
		&resp.Diagnostics)
	if !ok {
		return
	}
	r.warnWithoutController(ctx, plan.Cluster.Key(), decision, &resp.Diagnostics)
	if topology.AnyScalable(spec) || found.scalable {
		resp.Diagnostics.Append(leaveOpen(ctx, plan, found.needsApply || len(found.leaving) > 0 || known.moves,
			&resp.Plan)...)
		return
	}
	list := listed(decision.Members)
	for _, computed := range []struct {
		attribute      string
		planned, value types.Map
	}{
		{"members", plan.Members, mapIf(known.addresses, list.addresses)},
		{"placements", plan.Placements, known.placements(list.places)},
		{"cluster_spec", plan.ClusterSpec, mapIf(known.addresses, decision.Layout.ClusterSpec())},
	} {
		if !computed.value.Equal(computed.planned) {
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(computed.attribute), computed.value)...)
		}
	}
}

// refreshed is what the refresh found of a group. What a plan shows of existing members depends on this and not on what
// is found now, as the second plan during the apply has to come out the same.
type refreshed struct {
	// present are the members that are as they should be, and places where they are.
	present, places types.Map
	// leaving are the members that should leave unusable GPUs.
	leaving []string
	// needsApply is set if an apply would change something, and scalable if a role's count could change without one.
	needsApply, scalable bool
}

func refreshedGroup(
	ctx context.Context, plan Model, req resource.ModifyPlanRequest, diags *diag.Diagnostics,
) refreshed {
	found := refreshed{present: plan.Members, places: plan.Placements}
	if plan.Members.IsUnknown() { // else the plan shows the group as refreshed
		var framework types.String
		var roles map[string]RoleModel
		diags.Append(req.State.GetAttribute(ctx, path.Root("members"), &found.present)...)
		diags.Append(req.State.GetAttribute(ctx, path.Root("framework"), &framework)...)
		diags.Append(req.State.GetAttribute(ctx, path.Root("roles"), &roles)...)
		before := domain.Group{Framework: framework.ValueString(), Roles: map[string]domain.Role{}}
		for name, role := range roles {
			before.Roles[name] = domain.Role{Replicas: resourcekit.Integer[int](role.Replicas)}
		}
		found.scalable = topology.AnyScalable(before)
	}
	var err error
	if found.leaving, err = recallLeaving(ctx, req.Private); err == nil {
		found.needsApply, err = recallNeedsApply(ctx, req.Private)
	}
	if err != nil {
		resourcekit.AddError(diags, "Unable to plan the group", err)
	}
	return found
}

// mapIf returns a map of strings, or an unknown one.
func mapIf(known bool, m map[string]string) types.Map {
	if !known {
		return types.MapUnknown(types.StringType)
	}
	return resourcekit.StringMap(m)
}

// proposal is a group to decide about. Unknown are the attributes that are unknown yet and have placeholders.
type proposal struct {
	spec    domain.Group
	created bool
	unknown []domain.Path
}

// decide decides about a group on the cluster as it will be at that point of the apply. It returns false if the cluster
// is unknown yet, or if there are errors.
func (r *groupResource) decide(
	ctx context.Context, key domain.ClusterRef, proposed proposal, found refreshed, diags *diag.Diagnostics,
) (decision reconcile.Decision, known certain, ok bool) {
	spec, created := proposed.spec, proposed.created
	summary := fmt.Sprintf("Unable to plan group %q", spec.Name)
	reconciler, err := r.Session.Plan(key)
	if err != nil {
		resourcekit.AddError(diags, summary, err)
		return decision, known, false
	}
	cluster, err := r.Session.PlannedCluster(ctx, key)
	if err != nil {
		resourcekit.AddError(diags, summary, err)
		return decision, known, false
	}
	if !cluster.Settled {
		tflog.Debug(ctx, "the cluster is not known yet: members will be known after the apply",
			map[string]any{"cluster": key.Name, "group": spec.Name})
		return decision, known, false
	}

	plans := r.Session.Plans
	for _, role := range spec.Roles {
		if role.GPUs != nil && plans.PoolIsOpen(resourcekit.IDOf(key), role.GPUs.Pool) {
			tflog.Debug(ctx, "the devices of the GPU pool are not known yet: members will be known after the apply",
				map[string]any{"pool": role.GPUs.Pool, "group": spec.Name})
			return decision, known, false
		}
	}
	plans.Deciding.Lock()
	defer plans.Deciding.Unlock()
	view, err := reconciler.View(ctx, cluster.Spec, spec)
	if err != nil {
		resourcekit.AddError(diags, summary, err)
		return decision, known, false
	}
	plans.Foresee(resourcekit.IDOf(key), &view, spec.Name, created)
	view.Leave = found.leaving
	if err := r.checkPolicies(ctx, reconciler, resourcekit.IDOf(key), spec, created, diags); err != nil {
		resourcekit.AddError(diags, summary, err)
	}
	decision, claim, problems, err := reconciler.PlanRoom(ctx, view, spec)
	if err != nil {
		resourcekit.AddError(diags, summary, err)
	}
	plans.PutYields(resourcekit.ItemAddress{Cluster: resourcekit.IDOf(key), Name: spec.Name}, claim.Gone)
	yields := claim.Yields(view)
	if yields != "" {
		problems.Warn(domain.Path{"priority"}, "Waits for room",
			"there is no room for group %q now. Its apply waits for roles with a priority below %d to give way: %s",
			spec.Name, spec.Priority, yields)
	}
	resourcekit.AddProblems(diags, problems.Certain(proposed.unknown))
	if diags.HasError() || problems.Err() != nil {
		return decision, known, false
	}
	if len(proposed.unknown) > 0 {
		plans.PutGroup(resourcekit.IDOf(key), spec.Name, decision.Document)
		return decision, known, true // what its members need on their hosts is unknown
	}
	reconciler.Arriving = plans.ArrivingFiles(resourcekit.IDOf(key))
	problems, err = reconciler.Preflight(ctx, decision, keptPresent(decision.KeptIn(view), found.present))
	if err != nil {
		resourcekit.AddError(diags, summary, err)
	}
	resourcekit.AddProblems(diags, problems)
	if diags.HasError() {
		return decision, known, false
	}
	plans.PutGroup(resourcekit.IDOf(key), spec.Name, decision.Document)
	if known = certainty(view, decision); yields != "" {
		known.places, known.addresses = nil, false // decided at that point of the apply
	}
	known.moves = moves(view, decision, found)
	return decision, known, true
}

// checkPolicies checks that each role's count follows either its replicas or a policy. Policies are planned after their
// groups and check that themselves; this covers policies that were planned earlier in this run, and stored ones, which
// may be outside of this configuration. A new group has neither.
func (r *groupResource) checkPolicies(
	ctx context.Context, reconciler reconcile.Reconciler, cluster resourcekit.ClusterID, spec domain.Group,
	created bool, diags *diag.Diagnostics,
) error {
	counted := slices.DeleteFunc(spec.RoleNames(), func(name string) bool { return spec.Roles[name].Replicas == nil })
	var stored map[string]domain.AutoscalingPolicyDocument
	if len(counted) > 0 && !created {
		var err error
		if stored, err = engine.List[domain.AutoscalingPolicyDocument](ctx, reconciler.Engine); err != nil {
			return err
		}
	}
	var problems domain.Problems
	for _, name := range counted {
		at, key, replicas := domain.Path{
			"roles", domain.Key(name), "replicas",
		}, domain.PolicyKey(spec.Name, name), *spec.Roles[name].Replicas
		policy, found := stored[key]
		known := r.Session.Plans.Policy(resourcekit.PolicyAddress{Cluster: cluster, Key: key})
		switch {
		case known.Planned:
			problems = append(problems, reconcile.CountedTwice(at, spec.Name, name, replicas, known.Spec))
		case found && !policy.Ending && !known.Leaving:
			problem := reconcile.CountedTwice(at, spec.Name, name, replicas, policy.Spec)
			problem.Warning = true
			problem.Detail += fmt.Sprintf(". Unless this plan destroys it, the policy (%s) has no effect from "+
				"the apply on",
				policy.Spec.ID())
			problems = append(problems, problem)
		}
	}
	resourcekit.AddProblems(diags, problems)
	return nil
}

// keptPresent returns those kept members that the refresh found present.
func keptPresent(kept map[string]bool, present types.Map) map[string]bool {
	found := present.Elements()
	for name := range kept {
		if _, there := found[name]; !there {
			delete(kept, name)
		}
	}
	return kept
}

// certain is the part of a decision that will still hold when it is applied.
type certain struct {
	// places are the places of members whose host and GPUs are certain.
	places map[string]string
	// addresses is set if the addresses of all members are certain.
	addresses bool
	// moves is set if existing members get another place or address.
	moves bool
}

// placements returns the certain places, and the others as unknown.
func (c certain) placements(places map[string]string) types.Map {
	if len(c.places) == 0 && len(places) > 0 {
		return types.MapUnknown(types.StringType)
	}
	elements := make(map[string]attr.Value, len(places))
	for member := range places {
		elements[member] = types.StringUnknown()
		if place, known := c.places[member]; known {
			elements[member] = types.StringValue(place)
		}
	}
	return types.MapValueMust(types.StringType, elements)
}

// certainty returns the part of a decision that holds whatever else is applied before it: kept assignments, the only
// host of a cluster, configured ports, and GPUs if the group has all of a pool. A choice among several hosts, GPUs or
// free ports is made again during the apply, when groups that were applied before may have changed it: Terraform then
// plans each resource once more, in any order, without passing on what it had planned.
func certainty(view reconcile.View, decision reconcile.Decision) certain {
	known := certain{places: map[string]string{}, addresses: true}
	document := decision.Document
	stored := view.Groups[document.Spec.Name]
	goesOn, oneHost := stored.Spec.Equal(document.Spec), len(view.Inventory.Hosts) == 1
	for _, member := range decision.Members {
		if member.Shared() {
			continue // the engine schedules it, and its address is that of the role
		}
		before, role := stored.Assignments[member.Name], document.Spec.Roles[member.Role]
		kept := before.Host == member.Host && before.GPUs == member.GPUs
		if _, lost := view.Inventory.Lost[before.Host]; lost && !goesOn {
			kept = false // an apply moves it; without one, the controller does so in its time
		}
		if slices.Contains(view.Leave, member.Name) {
			kept = false // an apply looks for other GPUs, and leaves it if there are none by then
		}
		if kept || role.GPUs == nil && oneHost || role.GPUs != nil && hasAll(document, view.Pools[role.GPUs.Pool]) {
			known.places[member.Name] = placeOf(member)
		}
		if !kept || before.Port != member.Port {
			known.addresses = known.addresses && oneHost && role.Port != nil
		}
	}
	return known
}

// hasAll reports whether a group has all devices of a GPU pool, which are on one host, so that others have nothing to
// choose from. With slots, which others may share, that is only certain for a single device.
func hasAll(document domain.GroupDocument, pool domain.GPUPoolDocument) bool {
	given := map[string]bool{}
	for _, assigned := range document.Assignments {
		for _, uuid := range assigned.GPUs.UUIDs() {
			given[uuid] = true
		}
	}
	for _, devices := range pool.Devices {
		for _, device := range devices {
			if !given[device.UUID] || pool.Spec.SharingRule() == domain.Slots && len(devices) > 1 {
				return false
			}
		}
	}
	return len(pool.Devices) == 1
}
