package policy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Read refreshes the policy. It warns of silent guards as well, since with -refresh-only nothing is planned.
func (r *autoscalingPolicyResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	r.Entity.Read(ctx, req, resp)
	if resp.Diagnostics.HasError() || resp.State.Raw.IsNull() {
		return
	}
	var state Model
	if resp.Diagnostics.Append(resp.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	r.warnOfSilent(ctx, "read", state, state.Expand(&resp.Diagnostics), &resp.Diagnostics)
}

// warnOfSilent warns of guards that the controller reports as never having had a value, once in each run. Refresh and
// plan share the engine call that reads them.
func (r *autoscalingPolicyResource) warnOfSilent(
	ctx context.Context, do string, m Model, spec domain.AutoscalingPolicy, diags *diag.Diagnostics,
) {
	if len(spec.Guards.Questions()) == 0 {
		return
	}
	reconciler, err := r.Session.Plan(m.Cluster.Key())
	var silent domain.SilentGuardsDocument
	if err == nil {
		silent, err = engine.Get[domain.SilentGuardsDocument](ctx, reconciler.Engine, spec.Key())
	}
	if err != nil && !notThereYet(err) {
		resourcekit.AddError(diags, resourcekit.Unable(do, m), err)
		return
	}
	resourcekit.AddProblems(diags, r.Session.Plans.NewWarnings(m.address(), silent.Warnings(spec)))
}
