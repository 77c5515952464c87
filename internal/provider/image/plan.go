package image

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// computedImage are the attributes of an image that are no part of its configuration.
var computedImage = []string{"id", "image_id", "source_hash", "hosts", "timeouts"}

// ValidateConfig checks that an image to load or build is not named by a digest.
func (r *imageResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	var name types.String
	if resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("name"),
		&name)...); resp.Diagnostics.HasError() || name.IsNull() || name.IsUnknown() {
		return
	}
	for _, source := range []path.Path{path.Root("archive"), path.Root("build")} {
		var given attr.Value
		if resp.Diagnostics.Append(req.Config.GetAttribute(ctx, source, &given)...); given == nil || given.IsNull() {
			continue
		}
		if err := checkName(name, source); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("name"), invalidName, err.Error())
		}
	}
}

// ModifyPlan reads what the image is made from and what the hosts have, which determine the changes.
func (r *imageResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	if req.Plan.Raw.IsNull() || r.Session == nil {
		return
	}
	planned := Model{
		ID: types.StringUnknown(), ImageID: types.StringUnknown(), SourceHash: types.StringUnknown(),
		Hosts: types.MapUnknown(types.StringType),
	}
	if resourcekit.SettledAttributes(req.Plan.Raw, computedImage...) {
		var prior *Model
		if !req.State.Raw.IsNull() {
			prior = &Model{}
			resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
		}
		if resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...); resp.Diagnostics.HasError() {
			return
		}
		r.decide(ctx, &planned, prior, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	for name, value := range map[string]attr.Value{
		"id": planned.ID, "image_id": planned.ImageID, "source_hash": planned.SourceHash, "hosts": planned.Hosts,
	} {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// decide fills in the computed attributes of a planned image. Prior is nil for a new one.
func (r *imageResource) decide(ctx context.Context, planned, prior *Model, diags *diag.Diagnostics) {
	reconciler, err := r.Session.Plan(planned.Cluster.Key())
	if err != nil {
		resourcekit.AddError(diags, resourcekit.Unable("plan", planned), err)
		return
	}
	if _, err := engine.Images(reconciler.Engine); err != nil {
		diags.AddAttributeError(path.Root("cluster").AtName("engine"), "Images not supported", err.Error())
		return
	}
	source, err := planned.source()
	if err != nil {
		diags.AddAttributeError(source.at, resourcekit.Unable("plan", planned), err.Error())
		return
	}
	if prior != nil &&
		prior.ID.ValueString() != resourceID(planned.Cluster.Name.ValueString(), planned.Name.ValueString()) {
		prior = nil // it is replaced
	}
	changes := planned.Hosts.IsUnknown()
	planned.ID = types.StringValue(resourceID(planned.Cluster.Name.ValueString(), planned.Name.ValueString()))
	planned.ImageID, planned.SourceHash, planned.Hosts = source.id, source.hash, types.MapUnknown(types.StringType)
	if prior == nil {
		return
	}
	have := resourcekit.TextsIn(prior.Hosts)
	if source.id.IsUnknown() && (source.build == nil || source.hash.Equal(prior.SourceHash)) &&
		held(have, prior.ImageID.ValueString()) {
		planned.ImageID = prior.ImageID
	}
	if planned.ImageID.IsUnknown() {
		return
	}
	cluster, err := r.Session.PlannedCluster(ctx, planned.Cluster.Key())
	if err != nil {
		resourcekit.AddError(diags, resourcekit.Unable("plan", planned), err)
		return
	}
	lacking := func(host string) bool { return have[host] != planned.ImageID.ValueString() }
	if cluster.Settled && !slices.ContainsFunc(cluster.Spec.HostNames(), lacking) {
		planned.Hosts = prior.Hosts
		if changes || !planned.ImageID.Equal(prior.ImageID) || !planned.SourceHash.Equal(prior.SourceHash) {
			planned.Hosts = resourcekit.OfHosts(prior.Hosts, cluster.Spec)
		}
	}
}

// held reports whether any host has an image.
func held(have map[string]string, id string) bool {
	for _, found := range have {
		if found == id {
			return true
		}
	}
	return false
}
