package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// gpuPoolResource is trainyard_gpu_pool.
type gpuPoolResource struct {
	engines []string
	session *session
}

var (
	_ resource.ResourceWithConfigure      = &gpuPoolResource{}
	_ resource.ResourceWithValidateConfig = &gpuPoolResource{}
	_ resource.ResourceWithModifyPlan     = &gpuPoolResource{}
	_ resource.ResourceWithImportState    = &gpuPoolResource{}
	_ resource.ResourceWithIdentity       = &gpuPoolResource{}
)

func (r *gpuPoolResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_gpu_pool"
}

func (r *gpuPoolResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = gpuPoolSchema(ctx, r.engines)
}

func (r *gpuPoolResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("GPU pool")
}

func (r *gpuPoolResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (r *gpuPoolResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.write(ctx, creationOf(req, resp))
}

func (r *gpuPoolResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.write(ctx, updateOf(req, resp))
}

func (r *gpuPoolResource) write(ctx context.Context, w write) {
	var plan gpuPoolModel
	if w.diags.Append(w.plan.Get(ctx, &plan)...); w.diags.HasError() {
		return
	}
	do, limit := "update", plan.Timeouts.Update
	if w.created {
		do, limit = "create", plan.Timeouts.Create
	}
	timeout, diags := limit(ctx, defaultGPUPoolTimeout)
	w.diags.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	document, err := r.put(ctx, plan, w)
	if err != nil {
		addError(w.diags, plan.unable(do), err)
		return
	}
	if w.created && document.Revision > 1 {
		w.diags.AddWarning("GPU pool adopted", fmt.Sprintf("Cluster %q had a GPU pool %q already, as it is specified here. It is managed by this resource from now on.", document.Spec.Cluster, document.Spec.Name))
	}
	w.diags.Append(w.state.Set(ctx, flattenGPUPool(document, plan))...)
	w.diags.Append(w.identity.Set(ctx, plan.identity())...)
}

// put makes a pool be as planned, and returns its document, as it is read after the write.
func (r *gpuPoolResource) put(ctx context.Context, plan gpuPoolModel, w write) (domain.GPUPoolDocument, error) {
	key, spec := plan.Cluster.key(), plan.specified(w.diags)
	defer r.session.plans.dropPool(idOf(key), spec.Name)
	reconciler, err := reach(ctx, r.session.open, plan.Cluster, w.private)
	if err != nil {
		return domain.GPUPoolDocument{}, err
	}
	if existing, err := reconciler.Pool(ctx, spec.Name); err == nil && !w.created && existing.Spec.Equal(spec) {
		if len(existing.Trouble) == 0 {
			return existing, nil // what was chosen stays chosen
		}
		if _, err := reconciler.KeepPools(ctx); err != nil {
			return domain.GPUPoolDocument{}, err
		}
		return reconciler.Pool(ctx, spec.Name)
	}
	warnings, err := reconciler.PutPool(ctx, spec, w.created, plan.shown())
	if err != nil {
		return domain.GPUPoolDocument{}, err
	}
	addProblems(w.diags, warnings)
	return reconciler.Pool(ctx, spec.Name)
}

func (r *gpuPoolResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior gpuPoolModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	// The framework insists on an identity even for what is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.identity())...)
	reconciler, err := reach(ctx, r.session.plan, prior.Cluster, resp.Private)
	var document domain.GPUPoolDocument
	if err == nil {
		document, err = reconciler.Pool(ctx, prior.Name.ValueString())
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
	case err != nil:
		addError(&resp.Diagnostics, prior.unable("read"), err)
	default:
		resp.Diagnostics.Append(resp.State.Set(ctx, flattenGPUPool(document, prior))...)
	}
}

func (r *gpuPoolResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state gpuPoolModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultGPUPoolTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	key, name := state.Cluster.key(), state.Name.ValueString()
	reconciler, err := reach(ctx, r.session.open, state.Cluster, resp.Private)
	if err == nil {
		err = reconciler.DeletePool(ctx, key.Name, name)
	}
	if err != nil {
		addError(&resp.Diagnostics, state.unable("remove"), err)
		return
	}
	r.session.plans.dropPool(idOf(key), name)
}

// ImportState takes <cluster>/<pool>, as ID or in parts as identity.
func (r *gpuPoolResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importable{"GPU pool", "a GPU pool, which is <cluster>/<pool>, such as lab/v100", plainName}.into(ctx, r.session, req, resp)
}

// unable is the summary of an error: that something can't be done with the pool.
func (m gpuPoolModel) unable(do string) string {
	return fmt.Sprintf("Unable to %s GPU pool %q", do, m.Name.ValueString())
}
