package group

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// placing are the attributes of a role that its placement depends on.
var placing = []string{"replicas", "port", "resources", "gpus", "placement"}

// planUnknown checks whether there is room for a group with unknown values that don't affect placement, such as an
// image that has yet to be built. Groups that are planned later count its places as taken.
func (r *groupResource) planUnknown(ctx context.Context, plan tfsdk.Plan, created bool, diags *diag.Diagnostics) {
	supposed, unknown, err := resourcekit.Suppose(ctx, tfsdk.Config(plan), diags)
	if err != nil {
		diags.AddError("Unable to plan the group", err.Error())
	}
	unknown = slices.DeleteFunc(unknown, func(at domain.Path) bool {
		name, ok := at[0].(string)
		return ok && slices.Contains(notChecked, name)
	})
	if diags.HasError() || slices.ContainsFunc(unknown, decidesPlaces) {
		return
	}
	var group Model
	if diags.Append(supposed.Get(ctx, &group)...); diags.HasError() {
		return
	}
	group.TemplateModel = group.runningSomething(domain.Path{}, unknown)
	for name, role := range group.Roles {
		role.TemplateModel = role.runningSomething(domain.Path{"roles", domain.Key(name)}, unknown)
		group.Roles[name] = role
	}
	var malformed diag.Diagnostics // the attributes' own validators report these
	spec := group.expand(&malformed)
	r.decide(ctx, group.Cluster.Key(), proposal{spec, created, unknown}, refreshed{}, diags)
}

// decidesPlaces reports whether placement depends on an attribute.
func decidesPlaces(at domain.Path) bool {
	switch at[0] {
	case "framework", "priority":
		return true
	case "roles":
		name, _ := at[min(2, len(at)-1)].(string)
		return len(at) < 3 || slices.Contains(placing, name)
	}
	return false
}

// runningSomething returns a template with placeholders for an unknown image and command.
func (m TemplateModel) runningSomething(at domain.Path, unknown []domain.Path) TemplateModel {
	const something = "unknown"
	if slices.ContainsFunc(unknown, at.At("image").Touches) {
		m.Image = new(something)
	}
	if slices.ContainsFunc(unknown, at.At("command").Touches) {
		m.Command = []string{something}
	}
	return m
}
