package group

import (
	"context"
	"net"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// leaveOpen makes the members unknown in the plan of a group that a policy may scale between refresh, plan and apply,
// each of which finds other members then. If there is nothing to change, what the refresh found stays in the state.
func leaveOpen(ctx context.Context, planned Model, changes bool, plan *tfsdk.Plan) (diags diag.Diagnostics) {
	if !changes || planned.Members.IsUnknown() {
		return nil
	}
	for _, attribute := range []string{"members", "placements", "cluster_spec"} {
		diags.Append(plan.SetAttribute(ctx, path.Root(attribute), types.MapUnknown(types.StringType))...)
	}
	return diags
}

// moves reports whether members get another place than they have, or another address than the refresh found. Members
// that were added or removed since don't count.
func moves(view reconcile.View, decision reconcile.Decision, found refreshed) bool {
	before := view.Groups[decision.Document.Spec.Name].Assignments
	for _, member := range decision.Members {
		had, there := before[member.Name]
		if there && !member.Shared() &&
			had != (domain.Assignment{Host: member.Host, Port: member.Port, GPUs: member.GPUs}) {
			return true
		}
	}
	if view.Traits.MemberAddress != nil {
		return false // they are reached by name
	}
	addresses := resourcekit.TextsIn(found.present)
	for member, place := range resourcekit.TextsIn(found.places) {
		host, known := view.Inventory.Hosts[domain.ParsePlace(place).Host]
		address, _, err := net.SplitHostPort(addresses[member])
		if known && err == nil && address != host.MemberAddress() {
			return true
		}
	}
	return false
}
