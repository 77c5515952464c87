package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// autoscalingPolicyResource is trainyard_autoscaling_policy.
type autoscalingPolicyResource struct{ resourcekit.Entity[Model] }

var (
	_ resource.ResourceWithConfigure      = &autoscalingPolicyResource{}
	_ resource.ResourceWithValidateConfig = &autoscalingPolicyResource{}
	_ resource.ResourceWithModifyPlan     = &autoscalingPolicyResource{}
	_ resource.ResourceWithImportState    = &autoscalingPolicyResource{}
	_ resource.ResourceWithIdentity       = &autoscalingPolicyResource{}
)

func (r *autoscalingPolicyResource) Schema(
	ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse,
) {
	resp.Schema = Schema(ctx, r.Engines)
}

// put applies a policy as planned, and returns the state from a read after the write. Once it is stored it is in the
// state, even if that read fails.
func (r *autoscalingPolicyResource) put(ctx context.Context, plan Model, w resourcekit.Write) (*Model, error) {
	spec := plan.Expand(w.Diags)
	if w.Diags.HasError() {
		return nil, nil
	}
	defer r.Session.Plans.DropPolicy(plan.address())
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, plan.Cluster, w.Private)
	if err != nil {
		return nil, err
	}
	adopted, err := reconciler.PutPolicy(ctx, spec, w.Created)
	if err != nil {
		return nil, err
	}
	if adopted {
		w.Diags.AddWarning("Autoscaling policy adopted", fmt.Sprintf("Role %q of group %q in cluster %q already had "+
			"an autoscaling policy with this specification. This resource manages it from now on.",
			spec.Role, spec.Group, spec.Cluster))
	}
	state, err := r.get(ctx, reconciler, plan)
	if err != nil {
		plan.ID = types.StringValue(spec.ID())
		return &plan, fmt.Errorf("it was stored, but could not be read: %w", err)
	}
	return &state, nil
}

func (r *autoscalingPolicyResource) get(
	ctx context.Context, reconciler reconcile.Reconciler, prior Model,
) (Model, error) {
	r.Session.Plans.KnowPolicy(prior.address())
	document, err := reconciler.Policy(ctx, prior.Group.ValueString(), prior.Role.ValueString())
	if err != nil {
		return prior, err
	}
	spec, err := withModels(ctx, reconciler, document.Spec, prior)
	return Flatten(spec, prior), err
}

// withModels returns a policy with the texts of its models. Unchanged ones are taken from prior, so that
// only an import, or a read after a change from outside, reads them. A missing model counts as empty,
// which the next apply changes.
func withModels(
	ctx context.Context, reconciler reconcile.Reconciler, spec domain.AutoscalingPolicy, prior Model,
) (domain.AutoscalingPolicy, error) {
	texts, known := map[string]string{}, prior.Expand(&diag.Diagnostics{}).Models()
	for digest := range spec.Models() {
		model, same := known[digest]
		if !same {
			read, err := reconciler.PolicyModels(ctx, spec)
			if errors.Is(err, engine.ErrNotFound) {
				return spec, nil
			}
			return read, err
		}
		texts[digest] = model.Text
	}
	return spec.WithModels(texts), nil
}

func (r *autoscalingPolicyResource) remove(
	ctx context.Context, reconciler reconcile.Reconciler, state Model, diags *diag.Diagnostics,
) error {
	left, err := reconciler.EndPolicy(ctx, state.Group.ValueString(), state.Role.ValueString())
	if err != nil {
		return err
	}
	if left != "" {
		diags.AddWarning("Count not changed", fmt.Sprintf("Autoscaling policy %q has ended, but the count is not "+
			"what on_destroy = %q says: %s. To change it, set replicas of the role.",
			state.ID.ValueString(), resourcekit.Value(state.OnDestroy), left))
	}
	r.Session.Plans.DropPolicy(state.address())
	return nil
}

// ImportState takes <cluster>/<group>/<role> as ID, with or without an address before it, or its parts as identity.
func (r *autoscalingPolicyResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	endpoint, names := resourcekit.CutEndpoint(req.ID, 3)
	parts := strings.Split(names, "/")
	if req.ID == "" && req.Identity != nil {
		var given identity
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
		parts = []string{given.Cluster.ValueString(), given.Group.ValueString(), given.Role.ValueString()}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if len(parts) != 3 || slices.Contains(parts, "") {
		resp.Diagnostics.AddError("Invalid import ID", fmt.Sprintf(
			"%q is not the ID of an autoscaling policy, which is <cluster>/<group>/<role>, such as lab/spark/worker.",
			req.ID,
		))
		return
	}
	if !resourcekit.ImportCluster(ctx, r.Session, endpoint, parts[0], "autoscaling policy", resp) {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("group"), parts[1])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("role"), parts[2])...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx,
		identity{types.StringValue(parts[0]), types.StringValue(parts[1]), types.StringValue(parts[2])})...)
}

// NewResource returns trainyard_autoscaling_policy for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	r := &autoscalingPolicyResource{}
	r.Resource, r.Timeout = resourcekit.NewResource("autoscaling_policy", engines, identitySchema()), defaultTimeout
	r.Put, r.Get, r.Remove = r.put, r.get, r.remove
	return r
}
