package group

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// warnWithoutController warns if a group needs the controller, for restarts or completion, and it is not running.
func (r *groupResource) warnWithoutController(
	ctx context.Context, key domain.ClusterRef, d reconcile.Decision, diags *diag.Diagnostics,
) {
	reconciler, err := r.Session.Plan(key)
	if err != nil {
		resourcekit.AddError(diags, fmt.Sprintf("Unable to plan group %q", d.Document.Spec.Name), err)
		return
	}
	var lost []string
	at := path.Empty()
	for _, name := range d.Document.Spec.RoleNames() {
		if restartsByController(reconciler.Engine.Traits(), d.Document.Spec, name) {
			lost, at = append(lost, "failed members are not restarted"),
				path.Root("roles").AtMapKey(name).AtName("restart")
			break
		}
	}
	if d.Rule().When != domain.WhenNever {
		lost, at = append(lost, "completion goes undetected"), path.Root("completion")
	}
	if len(lost) == 0 {
		return
	}
	r.Session.WarnOfResidents(ctx, key, resourcekit.ResidentWarning{
		Concerning: domain.Residents.MissingController, At: at,
		Summary:     fmt.Sprintf("No controller for group %q", d.Document.Spec.Name),
		Consequence: fmt.Sprintf("Until the controller runs, %s.", strings.Join(lost, ", and ")),
	}, diags)
}

// restartsByController reports whether nothing but the controller restarts failed members of a role.
func restartsByController(traits engine.Traits, spec domain.Group, role string) bool {
	if spec.Roles[role].RestartRule().Condition == domain.RestartNever {
		return false
	}
	byEngine := traits.Restarts || reconcile.SchedulingOf(traits, spec, role) == domain.SchedulingEngine
	return spec.RestartScope == domain.ScopeGroup || !byEngine
}
