package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// placing are the attributes of a role by which its members are placed.
var placing = []string{"replicas", "port", "resources", "gpus", "placement"}

// planUnknown looks whether there is room for a group of which not all is known, where that does not decide about places: an image, say, that
// is still to be built. Groups that are planned after it find its places taken.
func (r *groupResource) planUnknown(ctx context.Context, plan tfsdk.Plan, created bool, diags *diag.Diagnostics) {
	supposed, unknown, err := suppose(ctx, tfsdk.Config(plan), diags)
	if err != nil {
		diags.AddError("Unable to plan the group", err.Error())
	}
	unknown = slices.DeleteFunc(unknown, func(at domain.Path) bool {
		name, ok := at[0].(string)
		return ok && slices.Contains(undecisive, name)
	})
	if diags.HasError() || slices.ContainsFunc(unknown, decidesPlaces) {
		return
	}
	var group groupModel
	if diags.Append(supposed.Get(ctx, &group)...); diags.HasError() {
		return
	}
	group.templateModel = group.runningSomething(domain.Path{}, unknown)
	for name, role := range group.Roles {
		role.templateModel = role.runningSomething(domain.Path{"roles", domain.Key(name)}, unknown)
		group.Roles[name] = role
	}
	var malformed diag.Diagnostics // which the attributes' own validators tell
	spec := group.expand(&malformed)
	r.decide(ctx, group.Cluster.key(), proposal{spec, created, unknown}, refreshed{}, diags)
}

// decidesPlaces reports whether an attribute decides about the places of members.
func decidesPlaces(at domain.Path) bool {
	switch at[0] {
	case "framework":
		return true
	case "roles":
		name, _ := at[min(2, len(at)-1)].(string)
		return len(at) < 3 || slices.Contains(placing, name)
	}
	return false
}

// runningSomething returns what members run, with something in the place of an image and a command that are not known.
func (m templateModel) runningSomething(at domain.Path, unknown []domain.Path) templateModel {
	const something = "unknown"
	if slices.ContainsFunc(unknown, at.At("image").Touches) {
		m.Image = new(something)
	}
	if slices.ContainsFunc(unknown, at.At("command").Touches) {
		m.Command = []string{something}
	}
	return m
}
