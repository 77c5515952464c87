package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// residents returns the states of a cluster's controller and agents during a plan; none if the cluster doesn't exist
// yet.
func (s *session) residents(ctx context.Context, cluster domain.ClusterRef) (domain.Residents, error) {
	reconciler, err := s.plan(cluster)
	if err != nil {
		return domain.Residents{}, err
	}
	found, err := reconciler.Engine.Residents(ctx)
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrNotFormed) {
		return domain.Residents{}, nil
	}
	return found, err
}

// residentWarning is a warning about residents that don't run.
type residentWarning struct {
	// concerning selects the residents that matter here.
	concerning func(domain.Residents) []string
	// at is the attribute that needs them; it may be empty.
	at path.Path
	// summary is unique: of warnings with the same one, Terraform shows only the first. consequence says what doesn't
	// work.
	summary, consequence string
}

// warnOfResidents warns about residents that don't run.
func (s *session) warnOfResidents(ctx context.Context, cluster domain.ClusterRef, w residentWarning, diags *diag.Diagnostics) {
	found, err := s.residents(ctx, cluster)
	if err != nil {
		addError(diags, fmt.Sprintf("Unable to read the state of the controller and agents of cluster %q", cluster.Name), err)
		return
	}
	missing := w.concerning(found)
	if len(missing) == 0 {
		return
	}
	text := strings.TrimSpace(strings.Join(append(missing, w.consequence), "\n\n"))
	if len(w.at.Steps()) == 0 {
		diags.AddWarning(w.summary, text)
		return
	}
	diags.AddAttributeWarning(w.at, w.summary, text)
}

// notRunning is the summary of a warning about a cluster's residents.
func notRunning(cluster string) string {
	return fmt.Sprintf("Controller or agents of cluster %q not running", cluster)
}

// warnWithoutController warns if a group needs the controller, for restarts or completion, and it doesn't run.
func (r *groupResource) warnWithoutController(ctx context.Context, key domain.ClusterRef, d reconcile.Decision, diags *diag.Diagnostics) {
	var lost []string
	at := path.Empty()
	for _, name := range d.Document.Spec.RoleNames() {
		if d.Document.Spec.Roles[name].RestartRule().Condition != domain.RestartNever {
			lost, at = append(lost, "failed members are not restarted"), path.Root("roles").AtMapKey(name).AtName("restart")
			break
		}
	}
	if d.Rule().When != domain.WhenNever {
		lost, at = append(lost, "completion goes undetected"), path.Root("completion")
	}
	if len(lost) == 0 {
		return
	}
	r.session.warnOfResidents(ctx, key, residentWarning{
		concerning: domain.Residents.MissingController, at: at, summary: fmt.Sprintf("No controller for group %q", d.Document.Spec.Name),
		consequence: fmt.Sprintf("Until the controller runs, %s.", strings.Join(lost, ", and ")),
	}, diags)
}
