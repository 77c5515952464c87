package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// notChecked are the attributes that checking a sweep does not need.
var notChecked = []string{"id", "triggers", "timeouts"}

// ValidateConfig checks a sweep as far as possible without its cluster and with unknown values.
func (r *sweepResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resourcekit.ValidateKnown(ctx, req.Config, &resp.Diagnostics,
		func(m Model, malformed *diag.Diagnostics) domain.Problems {
			return sweep.Validate(m.expand(malformed))
		})
}

// ModifyPlan checks the planned sweep against its cluster, and says how many runs start again. An unchanged sweep is
// not checked, as ended runs need nothing any more.
func (r *sweepResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	if r.Session == nil {
		return
	}
	plans := r.Session.Plans
	before, existed := resourcekit.AddressIn(ctx, req.State, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.Plan.Raw.IsNull() {
		plans.PutSweep(before, resourcekit.PlannedSweep{Leaving: true})
		return
	}
	if !resourcekit.KnownAttribute(req.Plan.Raw, "cluster") || !resourcekit.KnownAttribute(req.Plan.Raw, "name") {
		return
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("cluster"), &plan.Cluster)...)
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("name"), &plan.Name)...)
	planned := plan.address()
	created := before != planned
	if existed && created {
		plans.PutSweep(before, resourcekit.PlannedSweep{Leaving: true})
	}
	plans.PutSweep(planned, resourcekit.PlannedSweep{Anew: created})
	if !resourcekit.SettledAttributes(req.Plan.Raw, notChecked...) {
		return
	}
	if !created && req.Plan.Raw.Equal(req.State.Raw) {
		r.planUnseen(ctx, plan, resp)
		return
	}
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	if !plan.Runs.Settled() || !plan.Config.Settled() {
		return
	}
	spec := plan.expand(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	found, known, err := r.check(ctx, plan.Cluster.Key(), spec, &resp.Diagnostics)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, resourcekit.Unable("plan", plan), err)
	}
	if !known || resp.Diagnostics.HasError() {
		return
	}
	if !created && resourcekit.KnownAttribute(req.Plan.Raw, "triggers") {
		warnReruns(spec, found, &resp.Diagnostics)
	}
	r.Session.WarnOfResidents(ctx, plan.Cluster.Key(), resourcekit.ResidentWarning{
		Concerning: domain.Residents.MissingController, At: path.Root("runs"),
		Summary:     fmt.Sprintf("No controller for sweep %q", spec.Name),
		Consequence: "Until the controller runs, no run is started.",
	}, &resp.Diagnostics)
}

// planUnseen makes an apply update a sweep that looks as planned but is not: its destroy was interrupted, or it has
// more runs than the state, as those without results were left out by the refresh and the configuration has removed
// them.
func (r *sweepResource) planUnseen(ctx context.Context, plan Model, resp *resource.ModifyPlanResponse) {
	reconciler, err := r.Session.Plan(plan.Cluster.Key())
	var stored domain.SweepDocument
	if err == nil {
		stored, err = engine.Get[domain.SweepDocument](ctx, reconciler.Engine, plan.Name.ValueString())
	}
	switch {
	case errors.Is(err, engine.ErrNotFound): // gone since the refresh
	case err != nil:
		resourcekit.AddError(&resp.Diagnostics, resourcekit.Unable("plan", plan), err)
	case stored.Ending || stored.Spec.Results != nil && stored.Count > runsIn(ctx, resp):
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringUnknown())...)
	}
}

// runsIn returns the number of runs in a plan.
func runsIn(ctx context.Context, plan *resource.ModifyPlanResponse) int {
	var runs packed.Value[variablesByRun]
	plan.Diagnostics.Append(plan.Plan.GetAttribute(ctx, path.Root("runs"), &runs)...)
	all, _ := runs.Unpack()
	return len(all)
}

// check returns what an apply would do on the cluster as it will be, and false if that is unknown yet.
func (r *sweepResource) check(
	ctx context.Context, key domain.ClusterRef, spec domain.Sweep, diags *diag.Diagnostics,
) (plan reconcile.SweepPlan, known bool, err error) {
	id, plans := resourcekit.IDOf(key), r.Session.Plans
	reconciler, err := r.Session.Plan(key)
	if err != nil {
		return plan, false, err
	}
	cluster, err := r.Session.PlannedCluster(ctx, key)
	if err != nil {
		return plan, false, err
	}
	if !cluster.Settled || spec.GPUs != nil && plans.PoolIsOpen(id, spec.GPUs.Pool) {
		tflog.Debug(ctx, "the cluster or the GPU pool is not known yet: the sweep will be checked during the apply",
			map[string]any{"cluster": key.Name, "sweep": spec.Name})
		return plan, false, nil
	}
	plans.Deciding.Lock()
	defer plans.Deciding.Unlock()
	keys := spec.Keys()
	view, err := reconciler.View(ctx, cluster.Spec, sweep.GroupOf(spec, keys[:min(len(keys), 1)]...))
	if err != nil {
		return plan, false, err
	}
	plans.ForeseeForSweep(id, &view, spec.Name)
	reconciler.Arriving = plans.ArrivingFiles(id)
	plan, problems, err := reconciler.CheckSweep(ctx, view, spec)
	resourcekit.AddProblems(diags, problems)
	return plan, true, err
}

// warnReruns warns of runs that start again.
func warnReruns(spec domain.Sweep, plan reconcile.SweepPlan, diags *diag.Diagnostics) {
	if plan.Reruns == 0 {
		return
	}
	start := "runs start"
	if plan.Reruns == 1 {
		start = "run starts"
	}
	if lost := len(plan.Lost); lost > 0 {
		diags.AddAttributeWarning(path.Root("results"), fmt.Sprintf("Sweep %q: results are gone", spec.Name),
			fmt.Sprintf("The results of %d of its successful runs are gone, so these runs start anew: %s.", lost,
				domain.Enumerate(plan.Lost)))
	}
	detail := fmt.Sprintf("%d of its %d runs were started before, and start anew: their earlier attempts are "+
		"forgotten, and those that are running are ended.", plan.Reruns, plan.Total)
	if plan.New > 0 {
		detail += fmt.Sprintf(" New: %d.", plan.New)
	}
	if plan.Gone > 0 {
		detail += fmt.Sprintf(" Removed: %d.", plan.Gone)
	}
	diags.AddAttributeWarning(path.Root("runs"), fmt.Sprintf("Sweep %q: %d %s anew", spec.Name, plan.Reruns, start),
		detail+fmt.Sprintf(" This follows rerun = %q.", spec.Rerun))
}
