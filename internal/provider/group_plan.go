package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	var before groupAddress
	existed := !req.State.Raw.IsNull()
	if existed {
		before = addressIn(ctx, req.State, &resp.Diagnostics)
	}
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
	created := before != groupAddress{idOf(plan.Cluster.key()), spec.Name}
	if existed && created {
		r.session.plans.putLeaving(before.cluster, before.name)
	}
	present := plan.Members
	if !created && present.IsUnknown() {
		resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("members"), &present)...)
	}
	decision, known, ok := r.decide(ctx, plan.Cluster.key(), spec, created, present, &resp.Diagnostics)
	if !ok {
		return
	}
	list := listed(decision.Members)
	for _, computed := range []struct {
		attribute string
		planned   types.Map
		known     bool
		value     map[string]string
	}{
		{"members", plan.Members, known.addresses, list.addresses},
		{"placements", plan.Placements, known.hosts, list.hosts},
		{"cluster_spec", plan.ClusterSpec, known.addresses, decision.Layout.ClusterSpec()},
	} {
		value := types.MapUnknown(types.StringType)
		if computed.known {
			value = stringMap(computed.value)
		}
		if !value.Equal(computed.planned) {
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(computed.attribute), value)...)
		}
	}
}

// groupAddress is what tells a group from all others.
type groupAddress struct {
	cluster clusterID
	name    string
}

func addressIn(ctx context.Context, state tfsdk.State, diags *diag.Diagnostics) groupAddress {
	var cluster clusterReference
	var name types.String
	diags.Append(state.GetAttribute(ctx, path.Root("cluster"), &cluster)...)
	diags.Append(state.GetAttribute(ctx, path.Root("name"), &name)...)
	return groupAddress{idOf(cluster.key()), name.ValueString()}
}

// decide decides about a group of a cluster as it will be when the group's turn comes in the apply; present are the members
// that are as they should be now. It returns false where the cluster is not known yet, or where there are errors.
func (r *groupResource) decide(ctx context.Context, key domain.ClusterRef, spec domain.Group, created bool, present types.Map, diags *diag.Diagnostics) (decision reconcile.Decision, known certain, ok bool) {
	summary := fmt.Sprintf("Unable to plan group %q", spec.Name)
	reconciler, err := r.session.plan(key)
	if err != nil {
		addError(diags, summary, err)
		return decision, known, false
	}
	cluster, found := r.session.plans.cluster(idOf(key))
	if !found {
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
	plans.deciding.Lock()
	defer plans.deciding.Unlock()
	view, err := reconciler.View(ctx, cluster.spec)
	if err != nil {
		addError(diags, summary, err)
		return decision, known, false
	}
	plans.foresee(idOf(key), &view, spec.Name, created)
	before := reconcile.Current(view.Traits, view.Inventory.Hosts, view.Groups[spec.Name])
	decision, problems := reconcile.Decide(view, spec)
	addProblems(diags, problems)
	if diags.HasError() {
		return decision, known, false
	}
	problems, err = reconciler.Preflight(ctx, decision, keptPresent(decision.Kept(before), present))
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
type certain struct{ hosts, addresses bool }

// certainty tells what of a decision holds whatever else is applied before it. A member that keeps its assignment is
// certain. So is the only host, and a port that is written down. The choice among several hosts, and of a free
// port, is made anew during the apply, when groups that are applied before may have changed it.
func certainty(view reconcile.View, decision reconcile.Decision) certain {
	known := certain{hosts: true, addresses: true}
	document := decision.Document
	stored := view.Groups[document.Spec.Name]
	before, goesOn := stored.Assignments, stored.Spec.Equal(document.Spec)
	for _, member := range decision.Members {
		if member.Host == "" {
			continue // the engine distributes it, and its address is that of its role
		}
		if assigned, kept := before[member.Name]; kept && assigned == document.Assignments[member.Name] {
			// An apply moves what is on a lost host. Without one it is the cluster's controller that does, in its time.
			if _, lost := view.Inventory.Lost[assigned.Host]; !lost || goesOn {
				continue
			}
		}
		if len(view.Inventory.Hosts) > 1 {
			return certain{}
		}
		if document.Spec.Roles[member.Role].Port == nil {
			known.addresses = false
		}
	}
	return known
}
