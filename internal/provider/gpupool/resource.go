package gpupool

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// gpuPoolResource is trainyard_gpu_pool.
type gpuPoolResource struct{ resourcekit.Entity[Model] }

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

// put applies a pool as planned, and returns the state from a read after the write. Once it is stored it is in the
// state, even if that read fails.
func (r *gpuPoolResource) put(ctx context.Context, plan Model, w resourcekit.Write) (*Model, error) {
	document, stored, err := r.write(ctx, plan, w)
	switch {
	case err != nil && stored:
		state := unread(plan)
		return &state, fmt.Errorf("it was stored, but could not be read: %w", err)
	case err != nil:
		return nil, err
	}
	if w.Created && document.Revision > 1 {
		w.Diags.AddWarning("GPU pool adopted", fmt.Sprintf(
			"Cluster %q already had a GPU pool %q with this specification. This resource manages it from now on.",
			document.Spec.Cluster, document.Spec.Name,
		))
	}
	state := flatten(document, plan)
	return &state, nil
}

// write applies a pool as planned, and returns the document from a read after the write. It also reports
// whether it stored the pool, after which that read may still fail.
func (r *gpuPoolResource) write(
	ctx context.Context, plan Model, w resourcekit.Write,
) (document domain.GPUPoolDocument, stored bool, err error) {
	key, spec := plan.Cluster.Key(), plan.specified(w.Diags)
	defer r.Session.Plans.DropPool(resourcekit.IDOf(key), spec.Name)
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, plan.Cluster, w.Private)
	if err != nil {
		return document, false, err
	}
	if existing, err := reconciler.Pool(ctx, spec.Name); err == nil && !w.Created && existing.Spec.Equal(spec) {
		if len(existing.Trouble) == 0 {
			return existing, false, nil // selected devices stay selected
		}
		if _, err := reconciler.KeepPools(ctx); err != nil {
			return document, false, err
		}
		document, err = reconciler.Pool(ctx, spec.Name)
		return document, false, err
	}
	warnings, err := reconciler.PutPool(ctx, spec, w.Created, plan.shown())
	if err != nil {
		return document, false, err
	}
	resourcekit.AddProblems(w.Diags, warnings)
	document, err = reconciler.Pool(ctx, spec.Name)
	return document, true, err
}

func (r *gpuPoolResource) get(ctx context.Context, reconciler reconcile.Reconciler, prior Model) (Model, error) {
	document, err := reconciler.Pool(ctx, prior.Name.ValueString())
	if err != nil {
		return prior, err
	}
	return flatten(document, prior), nil
}

func (r *gpuPoolResource) remove(
	ctx context.Context, reconciler reconcile.Reconciler, state Model, _ *diag.Diagnostics,
) error {
	key, name := state.Cluster.Key(), state.Name.ValueString()
	if err := reconciler.DeletePool(ctx, key.Name, name); err != nil {
		return err
	}
	r.Session.Plans.DropPool(resourcekit.IDOf(key), name)
	return nil
}

// ImportState takes <cluster>/<pool> as ID, or its parts as identity.
func (r *gpuPoolResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	resourcekit.Importable{
		Kind: "GPU pool", Form: "a GPU pool, which is <cluster>/<pool>, such as lab/v100", Valid: resourcekit.PlainName,
	}.Into(ctx, r.Session, req, resp)
}

// NewResource returns trainyard_gpu_pool for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	r := &gpuPoolResource{}
	r.Resource, r.Timeout = resourcekit.NewResource("gpu_pool", engines, resourcekit.IdentitySchema("GPU pool")),
		defaultTimeout
	r.Put, r.Get, r.Remove = r.put, r.get, r.remove
	return r
}
