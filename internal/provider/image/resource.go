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
type imageResource struct{ resourcekit.Resource }

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

// images returns the store of a cluster's images, see [resourcekit.Reach].
func images(ctx context.Context, open func(domain.ClusterRef) (reconcile.Reconciler, error), cluster resourcekit.ClusterReference, private resourcekit.PrivateState) (engine.ImageStore, error) {
	reconciler, err := resourcekit.Reach(ctx, open, cluster, private)
	if err != nil {
		return nil, err
	}
	return engine.Images(reconciler.Engine)
}

func (r *imageResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	state, ok := r.provide(ctx, plan, nil, resp.Private, plan.unable("create"), &resp.Diagnostics)
	if ok {
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	}
}

func (r *imageResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, prior Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	state, ok := r.provide(ctx, plan, &prior, resp.Private, plan.unable("update"), &resp.Diagnostics)
	if ok {
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	}
}

// provide brings a planned image to all hosts, and returns its state, which is that of a read after the write. Where it fails, the
// state has what is there of the image all the same; ok is false where nothing is.
func (r *imageResource) provide(ctx context.Context, plan Model, prior *Model, private resourcekit.PrivateState, unable string, diags *diag.Diagnostics) (state Model, ok bool) {
	source, err := plan.source()
	if err != nil {
		diags.AddAttributeError(source.at, unable, err.Error())
		return state, false
	}
	if !plan.SourceHash.IsUnknown() && !source.hash.Equal(plan.SourceHash) {
		diags.AddAttributeError(source.at, unable, fmt.Sprintf("What the image is made from has changed since it was planned, from %s to %s. Plan and apply again.",
			plan.SourceHash.ValueString(), source.hash.ValueString()))
		return state, false
	}
	store, err := images(ctx, r.Session.Open, plan.Cluster, private)
	if err != nil {
		resourcekit.AddError(diags, unable, err)
		return state, false
	}
	spec := engine.ImageSpec{Name: plan.Name.ValueString(), ID: plan.ImageID.ValueString(), Archive: source.archive, Build: source.build}
	if spec.ID == "" {
		spec.ID = source.id.ValueString()
	}
	if prior != nil {
		spec.Replaces = resourcekit.TextsIn(prior.Hosts)
	}
	found, failure := store.ProvideImage(ctx, spec)
	if failure == nil {
		spec.ID, failure = engine.ImageID(spec.Name, found)
	}
	if failure != nil {
		resourcekit.AddError(diags, unable, failure)
		return r.afterFailure(ctx, store, plan, prior, spec, failure)
	}
	state = plan
	state.ID = types.StringValue(resourceID(plan.Cluster.Name.ValueString(), spec.Name))
	state.ImageID, state.SourceHash, state.Hosts = types.StringValue(spec.ID), source.hash, imageHosts(found, spec.ID, plan.Hosts)
	return state, true
}

// afterFailure returns the state after a write that failed: what was there before, with what the hosts have now. Of a new image it is
// what has come to the hosts.
func (r *imageResource) afterFailure(ctx context.Context, store engine.ImageStore, plan Model, prior *Model, spec engine.ImageSpec, failure error) (state Model, ok bool) {
	if _, taken := errors.AsType[*engine.ImageTakenError](failure); taken {
		return state, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), group.ReadTimeout)
	defer cancel()
	found, err := store.FindImage(ctx, spec.Name)
	if err != nil {
		return state, false
	}
	if prior != nil {
		state = *prior
		state.Hosts = imageHosts(found, prior.ImageID.ValueString(), prior.Hosts)
		return state, true
	}
	maps.DeleteFunc(found, func(_ string, image engine.Image) bool {
		return !image.Is(spec.ID) && (spec.Build == nil || image.Source != spec.Build.Source)
	})
	if len(found) == 0 {
		return state, false
	}
	id, err := engine.ImageID(spec.Name, found)
	if err != nil {
		return state, false
	}
	state = plan
	state.ID = types.StringValue(resourceID(plan.Cluster.Name.ValueString(), spec.Name))
	state.ImageID, state.SourceHash, state.Hosts = types.StringValue(id), types.StringNull(), imageHosts(found, id, plan.Hosts)
	return state, true
}

func (r *imageResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	// The framework insists on an identity even for what is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	store, err := images(ctx, r.Session.Plan, state.Cluster, resp.Private)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, state.unable("read"), err)
		return
	}
	found, err := store.FindImage(ctx, state.Name.ValueString())
	switch {
	case errors.Is(err, engine.ErrNotFound), err == nil && len(found) == 0:
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		resourcekit.AddError(&resp.Diagnostics, state.unable("read"), err)
		return
	}
	if state.ImageID.IsNull() {
		id, err := engine.ImageID(state.Name.ValueString(), found)
		if err != nil {
			resourcekit.AddError(&resp.Diagnostics, state.unable("read"), err)
			return
		}
		state.ImageID = types.StringValue(id)
	}
	state.ID = types.StringValue(resourceID(state.Cluster.Name.ValueString(), state.Name.ValueString()))
	state.Hosts = imageHosts(found, state.ImageID.ValueString(), state.Hosts)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

func (r *imageResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	store, err := images(ctx, r.Session.Open, state.Cluster, resp.Private)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, state.unable("remove"), err)
		return
	}
	left, err := store.RemoveImage(ctx, state.Name.ValueString(), state.ImageID.ValueString())
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, state.unable("remove"), err)
		return
	}
	for _, host := range slices.Sorted(maps.Keys(left)) {
		resp.Diagnostics.AddWarning("Image left on a host", fmt.Sprintf("Host %s keeps %q: %s.", host, state.Name.ValueString(), strings.TrimSuffix(left[host], ".")))
	}
}

// ImportState takes <cluster>/<name>, as ID or in parts as identity. What the image was made from is not known.
func (r *imageResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	named := func(name string) bool {
		_, err := parseName(name)
		return err == nil
	}
	resourcekit.Importable{Kind: "image", Form: "an image, which is <cluster>/<name>, such as lab/trainer:1.2", Valid: named}.Into(ctx, r.Session, req, resp)
}

// NewResource returns trainyard_image for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	return &imageResource{resourcekit.NewResource("image", engines, resourcekit.IdentitySchema("image"))}
}
