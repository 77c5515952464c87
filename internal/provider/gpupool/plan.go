package gpupool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// beyondPoolName are the attributes of a GPU pool except those that identify it.
var beyondPoolName = []string{
	"id", "devices", "select", "sharing", "memory_mib_per_slot", "reserve_percent", "strategy", "on_foreign_process",
	"slots", "device_slots", "unhealthy", "timeouts",
}

// ValidateConfig checks a pool as far as possible without its cluster and with unknown values.
func (r *gpuPoolResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resourcekit.ValidateKnown(ctx, req.Config, &resp.Diagnostics,
		func(pool Model, malformed *diag.Diagnostics) domain.Problems {
			return pool.expand(malformed).Validate()
		})
}

// ModifyPlan finds the devices of the planned pool, so that errors show up at plan and not in the middle of an apply.
// If hosts are unknown or have yet to join the cluster, the devices are known after the apply.
func (r *gpuPoolResource) ModifyPlan(
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
	plans := r.Session.Plans
	if req.Plan.Raw.IsNull() {
		plans.PutPool(before.Cluster, before.Name, resourcekit.PlannedPool{Leaving: true})
		return
	}
	if !resourcekit.SettledAttributes(req.Plan.Raw, beyondPoolName...) {
		return
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("cluster"), &plan.Cluster)...)
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("name"), &plan.Name)...)
	planned := resourcekit.ItemAddress{Cluster: resourcekit.IDOf(plan.Cluster.Key()), Name: plan.Name.ValueString()}
	created := before != planned
	if existed && created {
		plans.PutPool(before.Cluster, before.Name, resourcekit.PlannedPool{Leaving: true})
	}
	if existed && !created {
		planUnhealthy(ctx, req.State, resp)
	}
	if !resourcekit.SettledAttributes(req.Config.Raw, "cluster", "timeouts") {
		plans.PutPool(planned.Cluster, planned.Name, resourcekit.PlannedPool{})
		return
	}
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	plans.Deciding.Lock()
	defer plans.Deciding.Unlock()
	pool, err := r.decide(ctx, plan.Cluster.Key(), plan.specified(&resp.Diagnostics), created, &resp.Diagnostics)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, resourcekit.Unable("plan", plan), err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plans.PutPool(planned.Cluster, planned.Name, pool)
	if !pool.Settled {
		tflog.Debug(ctx, "the hosts are not known yet: devices will be known after the apply",
			map[string]any{"cluster": planned.Cluster.Name, "pool": planned.Name})
		return
	}
	warnUnhealthy(&resp.Diagnostics, pool.Document)
	r.warnWithoutAgents(ctx, plan.Cluster.Key(), pool.Document, &resp.Diagnostics)
	devices, slots, deviceSlots := foundDevices(pool.Document)
	for name, value := range map[string]attr.Value{"devices": devices, "slots": slots, "device_slots": deviceSlots} {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// planUnhealthy makes a plan show that a pool has unusable devices, and the apply examine them again. It goes by the
// state and not by what is found now, as the second plan during the apply has to come out the same.
func planUnhealthy(ctx context.Context, state tfsdk.State, resp *resource.ModifyPlanResponse) {
	var unhealthy types.Map
	resp.Diagnostics.Append(state.GetAttribute(ctx, path.Root("unhealthy"), &unhealthy)...)
	if len(unhealthy.Elements()) > 0 {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("unhealthy"),
			types.MapUnknown(types.StringType))...)
	}
}

// warnUnhealthy warns of a pool's unusable devices, and says what to do.
func warnUnhealthy(diags *diag.Diagnostics, pool domain.GPUPoolDocument) {
	unhealthy := pool.Unhealthy()
	if len(unhealthy) == 0 {
		return
	}
	var troubles []string
	for _, uuid := range slices.Sorted(maps.Keys(unhealthy)) {
		troubles = append(troubles, uuid+" of "+unhealthy[uuid])
	}
	diags.AddAttributeWarning(path.Root("unhealthy"), "GPUs in trouble", fmt.Sprintf(
		"GPU pool %q declares GPUs that can't be used: %s. No member gets them, and an apply moves members that have "+
			"them to other GPUs of the pool, if there are any. "+
			"Repair them, or remove them from the pool.", pool.Spec.Name, strings.Join(troubles, "; ")))
}

// warnWithoutAgents warns of hosts of a pool whose agents don't run, as nobody watches their GPUs.
func (r *gpuPoolResource) warnWithoutAgents(
	ctx context.Context, key domain.ClusterRef, pool domain.GPUPoolDocument, diags *diag.Diagnostics,
) {
	concerning := func(found domain.Residents) []string {
		if pool.Spec.Select != nil {
			return found.MissingAgents(slices.Collect(maps.Keys(found.Agents))...)
		}
		return found.MissingAgents(slices.Collect(maps.Keys(pool.Spec.Devices))...)
	}
	r.Session.WarnOfResidents(ctx, key, resourcekit.ResidentWarning{
		Concerning: concerning, At: path.Root("slots"),
		Summary:     fmt.Sprintf("GPUs of pool %q are not monitored", pool.Spec.Name),
		Consequence: "Until then, GPU failures and memory used by others go undetected there.",
	}, diags)
}

// decide finds the devices of a pool on the cluster as it will be at that point of the apply. A pool stored with the
// same specification keeps its devices, and no host is asked.
func (r *gpuPoolResource) decide(
	ctx context.Context, key domain.ClusterRef, spec domain.GPUPool, created bool, diags *diag.Diagnostics,
) (resourcekit.PlannedPool, error) {
	reconciler, err := r.Session.Plan(key)
	if err != nil {
		return resourcekit.PlannedPool{}, err
	}
	cluster, planned := r.Session.Plans.Cluster(resourcekit.IDOf(key))
	stored, err := engine.Cluster(ctx, reconciler.Engine)
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrNotFormed),
		err == nil && planned && !cluster.Settled:
		return resourcekit.PlannedPool{}, nil
	case err != nil:
		return resourcekit.PlannedPool{}, err
	case !planned:
		cluster.Spec = stored.Spec
	}
	if !created {
		existing, err := reconciler.Pool(ctx, spec.Name)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return resourcekit.PlannedPool{}, err
		}
		if err == nil && existing.Spec.Equal(spec) {
			return resourcekit.PlannedPool{Document: existing, Settled: true}, nil
		}
	}
	view, err := reconciler.PoolView(ctx, cluster.Spec)
	if err != nil {
		return resourcekit.PlannedPool{}, err
	}
	view.Pools = r.Session.Plans.ForeseePools(resourcekit.IDOf(key), view.Pools)
	if created {
		delete(view.Pools, spec.Name) // it will be gone before this one is created
	}
	if awaitsHost(view, spec) {
		return resourcekit.PlannedPool{}, nil
	}
	document, problems := reconcile.ResolvePool(view, spec)
	resourcekit.AddProblems(diags, problems)
	// hosts in warnings may answer by then
	return resourcekit.PlannedPool{Document: document, Settled: len(problems) == 0}, nil
}

// awaitsHost reports whether a pool may have devices of a host that has yet to join the cluster.
func awaitsHost(view reconcile.PoolView, spec domain.GPUPool) bool {
	for name, host := range view.Hosts {
		if _, joined := view.GPUs[name]; joined {
			continue
		}
		if _, named := spec.Devices[name]; named {
			return true
		}
		if spec.Select != nil && spec.Select.MatchesHost(name, host.Labels) {
			return true
		}
	}
	return false
}
