package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// undecisive are the attributes without which a group can be checked and laid out.
var undecisive = []string{"id", "triggers", "members", "placements", "cluster_spec", "timeouts"}

// ValidateConfig checks a group that is known as far as it can be told without its cluster.
func (r *groupResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if !settledAttributes(req.Config.Raw, slices.Concat(undecisive, []string{"cluster"})...) {
		return
	}
	// A copy that can be completed: this much of the cluster is not known before it is created.
	config := tfsdk.Plan{Schema: req.Config.Schema, Raw: req.Config.Raw}
	if settledAttributes(config.Raw, undecisive...) {
		resp.Diagnostics.Append(r.validate(ctx, config)...)
		return
	}
	resp.Diagnostics.Append(config.SetAttribute(ctx, path.Root("cluster"), anyCluster)...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(r.validate(ctx, config)...)
	}
}

// anyCluster stands for a cluster that is not known yet.
var anyCluster = clusterReference{Name: types.StringValue("cluster"), Engine: types.StringValue(defaultEngine), Endpoint: types.StringNull()}

func (r *groupResource) validate(ctx context.Context, config tfsdk.Plan) diag.Diagnostics {
	var group groupModel
	if diags := config.Get(ctx, &group); diags.HasError() {
		return diags
	}
	var malformed, diags diag.Diagnostics
	spec := group.expand(&malformed)
	if !malformed.HasError() {
		addProblems(&diags, topology.Validate(spec))
	}
	return diags
}

// ModifyPlan decides what the planned group will be. What can't be is an error now, and not in the middle of an
// apply. Where not all is known that a decision needs, the members are known after the apply.
func (r *groupResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.session == nil {
		return
	}
	before, existed := addressIn(ctx, req.State, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.session.plans.putLeaving(before.cluster, before.name)
		return
	}
	if !settledAttributes(req.Plan.Raw, undecisive...) {
		return
	}
	var plan groupModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	spec := plan.expand(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	created := before != itemAddress{idOf(plan.Cluster.key()), spec.Name}
	if existed && created {
		r.session.plans.putLeaving(before.cluster, before.name)
	}
	found := refreshed{present: plan.Members}
	if !created {
		found = refreshedGroup(ctx, plan.Members, req, &resp.Diagnostics)
	}
	decision, known, ok := r.decide(ctx, plan.Cluster.key(), spec, created, found, &resp.Diagnostics)
	if !ok {
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

// refreshed is what the refresh found of a group. What a plan shows of members that are there depends on this, not on what is found by now: the
// plan that is made once more during the apply has to come out the same.
type refreshed struct {
	// present are the members that are as they should be.
	present types.Map
	// leaving are those that are to leave GPUs that can't be used.
	leaving []string
}

func refreshedGroup(ctx context.Context, planned types.Map, req resource.ModifyPlanRequest, diags *diag.Diagnostics) refreshed {
	found := refreshed{present: planned}
	if planned.IsUnknown() {
		diags.Append(req.State.GetAttribute(ctx, path.Root("members"), &found.present)...)
	}
	leaving, err := recallLeaving(ctx, req.Private)
	if err != nil {
		addError(diags, "Unable to plan the group", err)
	}
	found.leaving = leaving
	return found
}

// mapIf returns a map of strings where it is known.
func mapIf(known bool, m map[string]string) types.Map {
	if !known {
		return types.MapUnknown(types.StringType)
	}
	return stringMap(m)
}

// itemAddress is what tells a group, or a GPU pool, from all others of its kind.
type itemAddress struct {
	cluster clusterID
	name    string
}

// addressIn returns the address of the item that a state holds, and false where it holds none.
func addressIn(ctx context.Context, state tfsdk.State, diags *diag.Diagnostics) (address itemAddress, found bool) {
	if state.Raw.IsNull() {
		return itemAddress{}, false
	}
	var cluster clusterReference
	var name types.String
	diags.Append(state.GetAttribute(ctx, path.Root("cluster"), &cluster)...)
	diags.Append(state.GetAttribute(ctx, path.Root("name"), &name)...)
	return itemAddress{idOf(cluster.key()), name.ValueString()}, true
}

// decide decides about a group of a cluster as it will be when the group's turn comes in the apply. It returns false where the cluster is not known yet, or where there are errors.
func (r *groupResource) decide(ctx context.Context, key domain.ClusterRef, spec domain.Group, created bool, found refreshed, diags *diag.Diagnostics) (decision reconcile.Decision, known certain, ok bool) {
	summary := fmt.Sprintf("Unable to plan group %q", spec.Name)
	reconciler, err := r.session.plan(key)
	if err != nil {
		addError(diags, summary, err)
		return decision, known, false
	}
	cluster, planned := r.session.plans.cluster(idOf(key))
	if !planned {
		document, err := reconciler.Engine.Cluster(ctx)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			addError(diags, summary, err)
			return decision, known, false
		}
		cluster = plannedCluster{spec: document.Spec, settled: err == nil}
	}
	if !cluster.settled {
		tflog.Debug(ctx, "the cluster is not known yet: members will be known after the apply", map[string]any{"cluster": key.Name, "group": spec.Name})
		return decision, known, false
	}

	plans := r.session.plans
	for _, role := range spec.Roles {
		if role.GPUs != nil && plans.poolIsOpen(idOf(key), role.GPUs.Pool) {
			tflog.Debug(ctx, "the devices of the GPU pool are not known yet: members will be known after the apply", map[string]any{"pool": role.GPUs.Pool, "group": spec.Name})
			return decision, known, false
		}
	}
	plans.deciding.Lock()
	defer plans.deciding.Unlock()
	view, err := reconciler.View(ctx, cluster.spec, spec)
	if err != nil {
		addError(diags, summary, err)
		return decision, known, false
	}
	plans.foresee(idOf(key), &view, spec.Name, created)
	view.Leave = found.leaving
	before := reconcile.Current(view.Traits, view.Inventory.Hosts, view.Groups[spec.Name])
	decision, problems, err := reconciler.Decide(ctx, view, spec)
	if err != nil {
		addError(diags, summary, err)
	}
	addProblems(diags, problems)
	if diags.HasError() {
		return decision, known, false
	}
	problems, err = reconciler.Preflight(ctx, decision, keptPresent(decision.Kept(before), found.present))
	if err != nil {
		addError(diags, summary, err)
	}
	addProblems(diags, problems)
	if diags.HasError() {
		return decision, known, false
	}
	plans.putGroup(idOf(key), spec.Name, decision.Document)
	return decision, certainty(view, decision), true
}

// keptPresent returns those of the members that a decision keeps that are present, as the refresh found them.
func keptPresent(kept map[string]bool, present types.Map) map[string]bool {
	found := present.Elements()
	for name := range kept {
		if _, there := found[name]; !there {
			delete(kept, name)
		}
	}
	return kept
}

// certain says what of a decision is known to hold when it is carried out.
type certain struct {
	// places are those of the members of which host and GPUs are known.
	places map[string]string
	// addresses tells whether those of all members are known.
	addresses bool
}

// placements returns the known ones of the places, and the others as unknown.
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

// certainty tells what of a decision holds whatever else is applied before it. A member that keeps its assignment is
// certain. So are the only host, a port that is written down, and GPUs where the group has all of a pool. The choice among
// several hosts or GPUs, and of a free port, is made anew during the apply, when groups that are applied before may have changed
// it: Terraform plans each resource once more then, in any order, without a word about what it had planned.
func certainty(view reconcile.View, decision reconcile.Decision) certain {
	known := certain{places: map[string]string{}, addresses: true}
	document := decision.Document
	stored := view.Groups[document.Spec.Name]
	goesOn, oneHost := stored.Spec.Equal(document.Spec), len(view.Inventory.Hosts) == 1
	for _, member := range decision.Members {
		if member.Host == "" {
			continue // the engine distributes it, and its address is that of its role
		}
		before, role := stored.Assignments[member.Name], document.Spec.Roles[member.Role]
		kept := before.Host == member.Host && before.GPUs == member.GPUs
		if _, lost := view.Inventory.Lost[before.Host]; lost && !goesOn {
			kept = false // an apply moves it; without one it is the cluster's controller that does, in its time
		}
		if slices.Contains(view.Leave, member.Name) {
			kept = false // an apply looks for other GPUs, and leaves it where it is if there are none by then
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

// hasAll tells whether a group has all devices of a GPU pool, on one host, so that there is nothing to choose for others. Of one with
// slots, whose devices others may use as well, that can be told where there is one device.
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
