package resourcekit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// residents returns the states of a cluster's controller and agents during a plan; none if the
// cluster doesn't exist yet.
func (s *Session) residents(ctx context.Context, cluster domain.ClusterRef) (domain.Residents, error) {
	reconciler, err := s.Plan(cluster)
	if err != nil {
		return domain.Residents{}, err
	}
	found, err := reconciler.Engine.Residents(ctx)
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrNotFormed) {
		return domain.Residents{}, nil
	}
	return found, err
}

// ResidentWarning is a warning about a controller or agents that don't run.
type ResidentWarning struct {
	// Concerning selects those that matter here.
	Concerning func(domain.Residents) []string
	// At is the attribute that needs them; it may be empty.
	At path.Path
	// Summary has to be unique, as Terraform only shows the first of several warnings with the same one. Consequence
	// says what does not work.
	Summary, Consequence string
}

// WarnOfResidents warns if a controller or agents don't run.
func (s *Session) WarnOfResidents(
	ctx context.Context, cluster domain.ClusterRef, w ResidentWarning, diags *diag.Diagnostics,
) {
	found, err := s.residents(ctx, cluster)
	if err != nil {
		AddError(diags,
			fmt.Sprintf("Unable to read the state of the controller and agents of cluster %q", cluster.Name), err)
		return
	}
	missing := w.Concerning(found)
	if len(missing) == 0 {
		return
	}
	text := strings.TrimSpace(strings.Join(append(missing, w.Consequence), "\n\n"))
	if len(w.At.Steps()) == 0 {
		diags.AddWarning(w.Summary, text)
		return
	}
	diags.AddAttributeWarning(w.At, w.Summary, text)
}

// NotRunning is the summary of a warning about a cluster's controller or agents.
func NotRunning(cluster string) string {
	return fmt.Sprintf("Controller or agents of cluster %q not running", cluster)
}
