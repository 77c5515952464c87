package policy

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// identity identifies an autoscaling policy.
type identity struct {
	Cluster types.String `tfsdk:"cluster"`
	Group   types.String `tfsdk:"group"`
	Role    types.String `tfsdk:"role"`
}

// identitySchema returns the identity schema of autoscaling policies.
func identitySchema() identityschema.Schema {
	part := func(description string) identityschema.Attribute {
		return identityschema.StringAttribute{Description: description, RequiredForImport: true}
	}
	return identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"cluster": part("Name of the cluster."), "group": part("Name of the group."), "role": part("Name of the role."),
	}}
}
