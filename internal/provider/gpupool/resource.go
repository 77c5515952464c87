package gpupool

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// gpuPoolResource is trainyard_gpu_pool.
type gpuPoolResource struct{ resourcekit.Resource }

var (
	_ resource.ResourceWithConfigure      = &gpuPoolResource{}
	_ resource.ResourceWithValidateConfig = &gpuPoolResource{}
	_ resource.ResourceWithModifyPlan     = &gpuPoolResource{}
	_ resource.ResourceWithImportState    = &gpuPoolResource{}
	_ resource.ResourceWithIdentity       = &gpuPoolResource{}
)

func (r *gpuPoolResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

func (r *gpuPoolResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.write(ctx, resourcekit.CreationOf(req, resp))
}

func (r *gpuPoolResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.write(ctx, resourcekit.UpdateOf(req, resp))
}

func (r *gpuPoolResource) write(ctx context.Context, w resourcekit.Write) {
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

	document, err := r.put(ctx, plan, w)
	if err != nil {
		resourcekit.AddError(w.Diags, plan.unable(do), err)
		return
	}
	if w.Created && document.Revision > 1 {
		w.Diags.AddWarning("GPU pool adopted", fmt.Sprintf("Cluster %q had a GPU pool %q already, as it is specified here. It is managed by this resource from now on.", document.Spec.Cluster, document.Spec.Name))
	}
	w.Diags.Append(w.State.Set(ctx, flatten(document, plan))...)
	w.Diags.Append(w.Identity.Set(ctx, plan.identity())...)
}

// put makes a pool be as planned, and returns its document, as it is read after the write.
func (r *gpuPoolResource) put(ctx context.Context, plan Model, w resourcekit.Write) (domain.GPUPoolDocument, error) {
	key, spec := plan.Cluster.Key(), plan.specified(w.Diags)
	defer r.Session.Plans.DropPool(resourcekit.IDOf(key), spec.Name)
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, plan.Cluster, w.Private)
	if err != nil {
		return domain.GPUPoolDocument{}, err
	}
	if existing, err := reconciler.Pool(ctx, spec.Name); err == nil && !w.Created && existing.Spec.Equal(spec) {
		if len(existing.Trouble) == 0 {
			return existing, nil // what was chosen stays chosen
		}
		if _, err := reconciler.KeepPools(ctx); err != nil {
			return domain.GPUPoolDocument{}, err
		}
		return reconciler.Pool(ctx, spec.Name)
	}
	warnings, err := reconciler.PutPool(ctx, spec, w.Created, plan.shown())
	if err != nil {
		return domain.GPUPoolDocument{}, err
	}
	resourcekit.AddProblems(w.Diags, warnings)
	return reconciler.Pool(ctx, spec.Name)
}

func (r *gpuPoolResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	// The framework insists on an identity even for what is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.identity())...)
	reconciler, err := resourcekit.Reach(ctx, r.Session.Plan, prior.Cluster, resp.Private)
	var document domain.GPUPoolDocument
	if err == nil {
		document, err = reconciler.Pool(ctx, prior.Name.ValueString())
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
	case err != nil:
		resourcekit.AddError(&resp.Diagnostics, prior.unable("read"), err)
	default:
		resp.Diagnostics.Append(resp.State.Set(ctx, flatten(document, prior))...)
	}
}

func (r *gpuPoolResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	key, name := state.Cluster.Key(), state.Name.ValueString()
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, state.Cluster, resp.Private)
	if err == nil {
		err = reconciler.DeletePool(ctx, key.Name, name)
	}
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, state.unable("remove"), err)
		return
	}
	r.Session.Plans.DropPool(resourcekit.IDOf(key), name)
}

// ImportState takes <cluster>/<pool>, as ID or in parts as identity.
func (r *gpuPoolResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resourcekit.Importable{Kind: "GPU pool", Form: "a GPU pool, which is <cluster>/<pool>, such as lab/v100", Valid: resourcekit.PlainName}.Into(ctx, r.Session, req, resp)
}

// unable is the summary of an error: that something can't be done with the pool.
func (m Model) unable(do string) string {
	return fmt.Sprintf("Unable to %s GPU pool %q", do, m.Name.ValueString())
}

// NewResource returns trainyard_gpu_pool for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	return &gpuPoolResource{resourcekit.NewResource("gpu_pool", engines, resourcekit.IdentitySchema("GPU pool"))}
}
