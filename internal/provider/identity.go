package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// identity tells what a cluster has under a name from all others of its kind.
type identity struct {
	Cluster types.String `tfsdk:"cluster"`
	Name    types.String `tfsdk:"name"`
}

// identitySchema is the schema of the identity of a kind of things.
func identitySchema(kind string) identityschema.Schema {
	return identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"cluster": identityschema.StringAttribute{Description: "Name of the cluster.", RequiredForImport: true},
			"name":    identityschema.StringAttribute{Description: "Name of the " + kind + ".", RequiredForImport: true},
		},
	}
}

// policyIdentity tells an autoscaling policy from all others.
type policyIdentity struct {
	Cluster types.String `tfsdk:"cluster"`
	Group   types.String `tfsdk:"group"`
	Role    types.String `tfsdk:"role"`
}

// policyIdentitySchema is the schema of the identity of autoscaling policies.
func policyIdentitySchema() identityschema.Schema {
	part := func(description string) identityschema.Attribute {
		return identityschema.StringAttribute{Description: description, RequiredForImport: true}
	}
	return identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"cluster": part("Name of the cluster."), "group": part("Name of the group."), "role": part("Name of the role."),
	}}
}

// importable is a kind of things that are imported by the names of their cluster and their own.
type importable struct {
	// kind is what it is called, and form says what its ID looks like, beginning with what it is the ID of.
	kind, form string
	// valid tells whether it can have a name.
	valid func(name string) bool
}

// into imports by ID, or by the parts of it as identity. The engine is the one that has a document of the cluster.
func (i importable) into(ctx context.Context, s *session, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, name, ok := strings.Cut(req.ID, "/")
	if req.ID == "" && req.Identity != nil {
		var given identity
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
		cluster, name, ok = given.Cluster.ValueString(), given.Name.ValueString(), true
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !ok || cluster == "" || !i.valid(name) {
		resp.Diagnostics.AddError("Invalid import ID", fmt.Sprintf("%q is not the ID of %s.", req.ID, i.form))
		return
	}
	if importCluster(ctx, s, cluster, i.kind, resp) {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{Cluster: types.StringValue(cluster), Name: types.StringValue(name)})...)
	}
}

// importCluster imports the cluster that a kind of things is of, by its name.
func importCluster(ctx context.Context, s *session, cluster, kind string, resp *resource.ImportStateResponse) bool {
	key, err := s.find(ctx, cluster)
	if err != nil {
		addError(&resp.Diagnostics, "Unable to import the "+kind, err)
		return false
	}
	for at, value := range map[string]types.String{"name": types.StringValue(key.Name), "engine": types.StringValue(key.Engine), "endpoint": textOrNull(key.Endpoint)} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster").AtName(at), value)...)
	}
	return true
}

// plainName tells whether a name can be part of an ID.
func plainName(name string) bool { return name != "" && !strings.Contains(name, "/") }
