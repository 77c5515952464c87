package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// autoscalingPolicyResource is trainyard_autoscaling_policy.
type autoscalingPolicyResource struct{ resourcekit.Resource }

var (
	_ resource.ResourceWithConfigure      = &autoscalingPolicyResource{}
	_ resource.ResourceWithValidateConfig = &autoscalingPolicyResource{}
	_ resource.ResourceWithModifyPlan     = &autoscalingPolicyResource{}
	_ resource.ResourceWithImportState    = &autoscalingPolicyResource{}
	_ resource.ResourceWithIdentity       = &autoscalingPolicyResource{}
)

func (r *autoscalingPolicyResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

func (r *autoscalingPolicyResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.write(ctx, resourcekit.CreationOf(req, resp))
}

func (r *autoscalingPolicyResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.write(ctx, resourcekit.UpdateOf(req, resp))
}

func (r *autoscalingPolicyResource) write(ctx context.Context, w resourcekit.Write) {
	var plan Model
	if w.Diags.Append(w.Plan.Get(ctx, &plan)...); w.Diags.HasError() {
		return
	}
	do, limit := "update", plan.Timeouts.Update
	if w.Created {
		do, limit = "create", plan.Timeouts.Create
	}
	timeout, diags := limit(ctx, defaultTimeout)
	w.Diags.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	spec := plan.Expand(w.Diags)
	if w.Diags.HasError() {
		return
	}
	document, adopted, err := r.put(ctx, plan, spec, w.Private, w.Created)
	if err != nil {
		resourcekit.AddError(w.Diags, plan.unable(do), err)
		return
	}
	if adopted {
		w.Diags.AddWarning("Autoscaling policy adopted", fmt.Sprintf("Role %q of group %q in cluster %q had an autoscaling policy already, as it is specified here. It is managed by this resource from now on.",
			document.Spec.Role, document.Spec.Group, document.Spec.Cluster))
	}
	w.Diags.Append(w.State.Set(ctx, Flatten(document.Spec, plan))...)
	w.Diags.Append(w.Identity.Set(ctx, plan.Identity())...)
}

// put makes a policy be as planned, and returns its document, as it is read after the write.
func (r *autoscalingPolicyResource) put(
	ctx context.Context, plan Model, spec domain.AutoscalingPolicy, private resourcekit.PrivateState, created bool,
) (document domain.AutoscalingPolicyDocument, adopted bool, err error) {
	defer r.Session.Plans.DropPolicy(plan.address())
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, plan.Cluster, private)
	if err != nil {
		return document, false, err
	}
	if adopted, err = reconciler.PutPolicy(ctx, spec, created); err != nil {
		return document, false, err
	}
	document, err = reconciler.Policy(ctx, spec.Group, spec.Role)
	return document, adopted, err
}

func (r *autoscalingPolicyResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	// The framework insists on an identity even for what is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.Identity())...)
	r.Session.Plans.KnowPolicy(prior.address())
	reconciler, err := resourcekit.Reach(ctx, r.Session.Plan, prior.Cluster, resp.Private)
	var document domain.AutoscalingPolicyDocument
	if err == nil {
		document, err = reconciler.Policy(ctx, prior.Group.ValueString(), prior.Role.ValueString())
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
	case err != nil:
		resourcekit.AddError(&resp.Diagnostics, prior.unable("read"), err)
	default:
		resp.Diagnostics.Append(resp.State.Set(ctx, Flatten(document.Spec, prior))...)
	}
}

func (r *autoscalingPolicyResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, state.Cluster, resp.Private)
	var left string
	if err == nil {
		left, err = reconciler.EndPolicy(ctx, state.Group.ValueString(), state.Role.ValueString())
	}
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, state.unable("remove"), err)
		return
	}
	if left != "" {
		resp.Diagnostics.AddWarning("Count left as it is", fmt.Sprintf("The autoscaling policy %q has ended, and the count is not what on_destroy = %q says: %s. A number of replicas in the role's configuration sets it.",
			state.ID.ValueString(), resourcekit.Value(state.OnDestroy), left))
	}
	r.Session.Plans.DropPolicy(state.address())
}

// ImportState takes <cluster>/<group>/<role>, as ID or in parts as identity.
func (r *autoscalingPolicyResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	parts := strings.Split(req.ID, "/")
	if req.ID == "" && req.Identity != nil {
		var given identity
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
		parts = []string{given.Cluster.ValueString(), given.Group.ValueString(), given.Role.ValueString()}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if len(parts) != 3 || slices.Contains(parts, "") {
		resp.Diagnostics.AddError("Invalid import ID", fmt.Sprintf("%q is not the ID of an autoscaling policy, which is <cluster>/<group>/<role>, such as lab/spark/worker.", req.ID))
		return
	}
	if !resourcekit.ImportCluster(ctx, r.Session, parts[0], "autoscaling policy", resp) {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("group"), parts[1])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("role"), parts[2])...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{types.StringValue(parts[0]), types.StringValue(parts[1]), types.StringValue(parts[2])})...)
}

// unable is the summary of an error: that something can't be done with the policy.
func (m Model) unable(do string) string {
	return fmt.Sprintf("Unable to %s autoscaling policy %q", do, domain.PolicyKey(m.Group.ValueString(), m.Role.ValueString()))
}

// NewResource returns trainyard_autoscaling_policy for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	return &autoscalingPolicyResource{resourcekit.NewResource("autoscaling_policy", engines, identitySchema())}
}
