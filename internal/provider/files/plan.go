package files

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// computed are the attributes that are no part of a configuration.
var computed = []string{"id", "path", "digest", "size_bytes", "hosts", "timeouts"}

// ValidateConfig checks files as far as possible without their source, which may not exist where a configuration is
// validated, and with unknown values.
func (r *filesResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resourcekit.ValidateKnown(ctx, req.Config, &resp.Diagnostics,
		func(m Model, malformed *diag.Diagnostics) domain.Problems {
			return m.expand(malformed).Validate()
		})
}

// ModifyPlan reads the source, which determines the path of the files.
func (r *filesResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	if req.Plan.Raw.IsNull() || r.Session == nil {
		return
	}
	planned := Model{
		Path: types.StringUnknown(), Digest: types.StringUnknown(), SizeBytes: types.Int64Unknown(),
		Hosts: types.MapUnknown(types.StringType),
	}
	switch {
	case resourcekit.SettledAttributes(req.Plan.Raw, computed...):
		var prior *Model
		if !req.State.Raw.IsNull() {
			prior = &Model{}
			resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
		}
		if resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...); resp.Diagnostics.HasError() {
			return
		}
		r.decide(ctx, &planned, prior, &resp.Diagnostics)
	case resourcekit.SettledAttributes(req.Plan.Raw, append([]string{"cluster", "name"}, computed...)...):
		// The digest depends on neither, and others may depend on it.
		var spec domain.Files
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("name"), &planned.Name)...)
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("source"), &spec.Source)...)
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("excludes"), &spec.Excludes)...)
		planned.read(ctx, spec, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	for name, value := range map[string]attr.Value{
		"path": planned.Path, "digest": planned.Digest, "size_bytes": planned.SizeBytes, "hosts": planned.Hosts,
	} {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// decide fills in the computed attributes of planned files. Prior is nil for new ones.
func (r *filesResource) decide(ctx context.Context, planned, prior *Model, diags *diag.Diagnostics) {
	reconciler, err := r.Session.Plan(planned.Cluster.Key())
	if err != nil {
		resourcekit.AddError(diags, resourcekit.Unable("plan", planned), err)
		return
	}
	store, err := engine.Files(reconciler.Engine)
	if err != nil {
		diags.AddAttributeError(path.Root("cluster").AtName("engine"), "Files not supported", err.Error())
		return
	}
	if planned.read(ctx, planned.expand(diags), diags); diags.HasError() {
		return
	}
	digest, changes := planned.Digest.ValueString(), planned.Hosts.IsUnknown()
	planned.Path, planned.Hosts = types.StringValue(store.FilesPath(digest)), types.MapUnknown(types.StringType)
	if prior != nil && prior.address() == planned.address() {
		cluster, err := r.Session.PlannedCluster(ctx, planned.Cluster.Key())
		if err != nil {
			resourcekit.AddError(diags, resourcekit.Unable("plan", planned), err)
			return
		}
		have := resourcekit.TextsIn(prior.Hosts)
		lacking := func(host string) bool { return have[host] != digest }
		if cluster.Settled && !slices.ContainsFunc(cluster.Spec.HostNames(), lacking) {
			if planned.Hosts = prior.Hosts; changes {
				planned.Hosts = resourcekit.OfHosts(prior.Hosts, cluster.Spec)
			}
			return
		}
	}
	r.Session.Plans.PutFiles(planned.address(), planned.Path.ValueString())
}

// read fills in the digest and the size of planned files.
func (m *Model) read(ctx context.Context, spec domain.Files, diags *diag.Diagnostics) {
	if diags.HasError() {
		return
	}
	content, err := sourceOf(spec).Read(ctx)
	if err != nil {
		diags.AddAttributeError(path.Root("source"), resourcekit.Unable("plan", m), err.Error())
		return
	}
	m.Digest, m.SizeBytes = types.StringValue(content.Tree.Digest()), types.Int64Value(content.Tree.Size())
}
