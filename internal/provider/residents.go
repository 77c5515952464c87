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

// residents returns the controller and the agents of a cluster as a plan finds them; none where the cluster is not there yet.
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

// warnOfResidents warns of the residents of a cluster that don't run, as far as they concern somebody, with what comes of that.
func (s *session) warnOfResidents(ctx context.Context, cluster domain.ClusterRef, concerning func(domain.Residents) []string, at path.Path, consequence string, diags *diag.Diagnostics) {
	found, err := s.residents(ctx, cluster)
	if err != nil {
		addError(diags, fmt.Sprintf("Unable to look at the controller and the agents of cluster %q", cluster.Name), err)
		return
	}
	if missing := concerning(found); len(missing) > 0 {
		text := strings.Join(append(missing, consequence), "\n\n")
		summary := fmt.Sprintf("Cluster %q is incomplete", cluster.Name)
		if len(at.Steps()) == 0 {
			diags.AddWarning(summary, strings.TrimSpace(text))
			return
		}
		diags.AddAttributeWarning(at, summary, text)
	}
}

// warnWithoutController warns of a group whose members nobody restarts or ends, as the controller of its cluster doesn't run.
func (r *groupResource) warnWithoutController(ctx context.Context, key domain.ClusterRef, d reconcile.Decision, diags *diag.Diagnostics) {
	var lost []string
	at := path.Empty()
	for _, name := range d.Document.Spec.RoleNames() {
		if d.Document.Spec.Roles[name].RestartRule().Condition != domain.RestartNever {
			lost, at = append(lost, "members that fail are not restarted"), path.Root("roles").AtMapKey(name).AtName("restart")
			break
		}
	}
	if d.Rule().When != domain.WhenNever {
		lost, at = append(lost, "nobody notices that the group is completed"), path.Root("completion")
	}
	if len(lost) == 0 {
		return
	}
	consequence := fmt.Sprintf("Until the controller runs, of group %q %s.", d.Document.Spec.Name, strings.Join(lost, ", and "))
	r.session.warnOfResidents(ctx, key, domain.Residents.MissingController, at, consequence, diags)
}
