package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// imageResource is trainyard_image.
type imageResource struct{ resourcekit.Entity[Model] }

var (
	_ resource.ResourceWithConfigure      = &imageResource{}
	_ resource.ResourceWithValidateConfig = &imageResource{}
	_ resource.ResourceWithModifyPlan     = &imageResource{}
	_ resource.ResourceWithImportState    = &imageResource{}
	_ resource.ResourceWithIdentity       = &imageResource{}
)

func (r *imageResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

// images returns the image store of a cluster, see [resourcekit.Reach].
func images(
	ctx context.Context, open func(domain.ClusterRef) (reconcile.Reconciler, error),
	cluster resourcekit.ClusterReference, private resourcekit.PrivateState,
) (engine.ImageStore, error) {
	reconciler, err := resourcekit.Reach(ctx, open, cluster, private)
	if err != nil {
		return nil, err
	}
	return engine.Images(reconciler.Engine)
}

// put brings a planned image to all hosts, and returns the state from a read after the write. If it fails, the state
// still has what hosts have of the image.
func (r *imageResource) put(ctx context.Context, plan Model, w resourcekit.Write) (*Model, error) {
	var prior *Model
	if !w.Created {
		prior = &Model{}
		if w.Diags.Append(w.Prior.Get(ctx, prior)...); w.Diags.HasError() {
			return nil, nil
		}
	}
	source, err := plan.source()
	unusable := ""
	switch {
	case err != nil:
		unusable = err.Error()
	case !plan.SourceHash.IsUnknown() && !source.hash.Equal(plan.SourceHash):
		unusable = fmt.Sprintf("The source of the image has changed since it was planned, from %s to %s. Plan and "+
			"apply again.",
			plan.SourceHash.ValueString(), source.hash.ValueString())
	}
	if unusable != "" {
		w.Diags.AddAttributeError(source.at, resourcekit.Unable(w.Verb(), plan), unusable)
		return nil, nil
	}
	store, err := images(ctx, r.Session.Open, plan.Cluster, w.Private)
	if err != nil {
		return nil, err
	}
	spec := engine.ImageSpec{
		Name: plan.Name.ValueString(), ID: plan.ImageID.ValueString(), Archive: source.archive, Build: source.build,
	}
	if spec.ID == "" {
		spec.ID = source.id.ValueString()
	}
	if prior != nil {
		spec.Replaces = resourcekit.TextsIn(prior.Hosts)
	}
	found, err := store.ProvideImage(ctx, spec)
	if err == nil {
		spec.ID, err = engine.ImageID(spec.Name, found)
	}
	if err != nil {
		return r.afterFailure(ctx, store, plan, prior, spec, err), err
	}
	state := plan
	state.ID = types.StringValue(resourceID(plan.Cluster.Name.ValueString(), spec.Name))
	state.ImageID, state.SourceHash, state.Hosts = types.StringValue(spec.ID), source.hash,
		imageHosts(found, spec.ID, plan.Hosts)
	return &state, nil
}

// afterFailure returns the state after a failed write: the prior state with what hosts have now. For a new image it is
// what has reached hosts, nil if nothing has.
func (r *imageResource) afterFailure(
	ctx context.Context, store engine.ImageStore, plan Model, prior *Model, spec engine.ImageSpec, failure error,
) *Model {
	if _, taken := errors.AsType[*engine.ImageTakenError](failure); taken {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), group.ReadTimeout)
	defer cancel()
	found, err := store.FindImage(ctx, spec.Name)
	if err != nil {
		return nil
	}
	if prior != nil {
		state := *prior
		state.Hosts = imageHosts(found, prior.ImageID.ValueString(), prior.Hosts)
		return &state
	}
	maps.DeleteFunc(found, func(_ string, image engine.Image) bool {
		return !image.Is(spec.ID) && (spec.Build == nil || image.Source != spec.Build.Source)
	})
	if len(found) == 0 {
		return nil
	}
	id, err := engine.ImageID(spec.Name, found)
	if err != nil {
		return nil
	}
	state := plan
	state.ID = types.StringValue(resourceID(plan.Cluster.Name.ValueString(), spec.Name))
	state.ImageID, state.SourceHash, state.Hosts = types.StringValue(id), types.StringNull(),
		imageHosts(found, id, plan.Hosts)
	return &state
}

func (r *imageResource) get(ctx context.Context, reconciler reconcile.Reconciler, state Model) (Model, error) {
	store, err := engine.Images(reconciler.Engine)
	if err != nil {
		return state, err
	}
	found, err := store.FindImage(ctx, state.Name.ValueString())
	if err == nil && len(found) == 0 {
		err = engine.ErrNotFound
	}
	if err != nil {
		return state, err
	}
	if state.ImageID.IsNull() {
		id, err := engine.ImageID(state.Name.ValueString(), found)
		if err != nil {
			return state, err
		}
		state.ImageID = types.StringValue(id)
	}
	state.ID = types.StringValue(resourceID(state.Cluster.Name.ValueString(), state.Name.ValueString()))
	state.Hosts = imageHosts(found, state.ImageID.ValueString(), state.Hosts)
	return state, nil
}

func (r *imageResource) remove(
	ctx context.Context, reconciler reconcile.Reconciler, state Model, diags *diag.Diagnostics,
) error {
	store, err := engine.Images(reconciler.Engine)
	if err != nil {
		return err
	}
	left, err := store.RemoveImage(ctx, state.Name.ValueString(), state.ImageID.ValueString())
	if err != nil {
		return err
	}
	for _, host := range slices.Sorted(maps.Keys(left)) {
		diags.AddWarning("Image left on a host",
			fmt.Sprintf("Host %s keeps %q: %s.", host, state.Name.ValueString(), strings.TrimSuffix(left[host], ".")))
	}
	return nil
}

// ImportState takes <cluster>/<name> as ID, or its parts as identity. What the image was made from is unknown.
func (r *imageResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	named := func(name string) bool {
		_, err := parseName(name)
		return err == nil
	}
	resourcekit.Importable{
		Kind: "image", Form: "an image, which is <cluster>/<name>, such as lab/trainer:1.2", Valid: named,
	}.Into(ctx, r.Session, req, resp)
}

// NewResource returns trainyard_image for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	r := &imageResource{}
	r.Resource, r.Timeout = resourcekit.NewResource("image", engines, resourcekit.IdentitySchema("image")),
		defaultTimeout
	r.Put, r.Get, r.Remove = r.put, r.get, r.remove
	return r
}
