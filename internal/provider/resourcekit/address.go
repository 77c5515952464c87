package resourcekit

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ItemAddress identifies a group, a GPU pool or another item among those of its kind.
type ItemAddress struct {
	Cluster ClusterID
	Name    string
}

// AddressIn returns the address of the item in a state, and false if the state is empty.
func AddressIn(ctx context.Context, state tfsdk.State, diags *diag.Diagnostics) (address ItemAddress, found bool) {
	if state.Raw.IsNull() {
		return ItemAddress{}, false
	}
	return AddressOf(ctx, state, diags), true
}

// attributes is a state or a plan.
type attributes interface {
	GetAttribute(ctx context.Context, at path.Path, target any) diag.Diagnostics
}

// AddressOf returns the address of an item.
func AddressOf(ctx context.Context, item attributes, diags *diag.Diagnostics) ItemAddress {
	var cluster ClusterReference
	var name types.String
	diags.Append(item.GetAttribute(ctx, path.Root("cluster"), &cluster)...)
	diags.Append(item.GetAttribute(ctx, path.Root("name"), &name)...)
	return ItemAddress{IDOf(cluster.Key()), name.ValueString()}
}

// PolicyAddress identifies a policy.
type PolicyAddress struct {
	Cluster ClusterID
	Key     string
}
