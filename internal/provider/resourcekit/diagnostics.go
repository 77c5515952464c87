package resourcekit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// AddProblems adds problems at their attributes, warnings as warnings.
func AddProblems(diags *diag.Diagnostics, problems domain.Problems) {
	for _, p := range problems {
		at := pathOf(p.Path)
		switch {
		case len(p.Path) == 0 && p.Warning:
			diags.AddWarning(p.Summary, p.Detail)
		case len(p.Path) == 0:
			diags.AddError(p.Summary, p.Detail)
		case p.Warning:
			diags.AddAttributeWarning(at, p.Summary, at.String()+": "+p.Detail)
		default:
			diags.AddAttributeError(at, p.Summary, at.String()+": "+p.Detail)
		}
	}
}

// pathOf converts a path of the domain to Terraform's. The domain uses the names of the schema.
func pathOf(p domain.Path) path.Path {
	at := path.Empty()
	for _, step := range p {
		switch s := step.(type) {
		case string:
			at = at.AtName(s)
		case domain.Key:
			at = at.AtMapKey(string(s))
		case int:
			at = at.AtListIndex(s)
		}
	}
	return at
}

// AddError adds an error by its type. Summary is what could not be done, for types without a summary of their own.
func AddError(diags *diag.Diagnostics, summary string, err error) {
	var (
		locked   *engine.LockedError
		corrupt  *engine.CorruptError
		astray   *engine.ElsewhereError
		exists   *reconcile.ExistsError
		member   *reconcile.MemberError
		back     *reconcile.RolledBackError
		stale    *reconcile.StalePlanError
		inUse    *reconcile.PoolInUseError
		policy   *reconcile.PolicyExistsError
		problem  domain.Problem
		problems domain.Problems
	)
	detail := err.Error()
	switch {
	case errors.As(err, &problems):
		AddProblems(diags, problems)
		return
	case errors.As(err, &problem):
		AddProblems(diags, domain.Problems{problem})
		return
	case errors.As(err, &locked):
		summary, detail = "Locked by another run", detail+"\n\nNothing was changed. Apply again when it has ended."
	case errors.As(err, &corrupt):
		summary = "Corrupt document"
	case errors.As(err, &astray):
		detail += ". Nothing was changed, and the state was kept.\n\nCheck where the endpoint of the cluster leads, " +
			"or DOCKER_HOST if it has none. If the former is gone for good, " +
			"remove its resources from the state (terraform state rm <address>), and apply or import them again."
	case errors.As(err, &exists):
		summary = "Group already exists"
	case errors.As(err, &policy):
		summary = "Autoscaling policy already exists"
	case errors.As(err, &stale):
		summary = "Plan out of date"
	case errors.As(err, &inUse):
		summary = "GPU pool in use"
	case errors.As(err, &back):
		summary = "Member failed"
	case errors.As(err, &member):
		summary = "Member failed"
		detail += "\n\nThe group was left as it is for inspection; its logs are in the data source trainyard_logs."
	case errors.Is(err, engine.ErrConflict):
		detail += "\n\nAnother run changed the same object at the same time. Plan and apply again."
	case errors.Is(err, engine.ErrUnreachable):
		detail += "\n\nThe state was kept. Check that the Docker Engine runs, and that its endpoint (endpoint of the " +
			"cluster, or DOCKER_HOST) and " +
			"the credentials in the provider's ssh and docker blocks are right. If the cluster is reached elsewhere " +
			"from now on, change its endpoint, " +
			"and plan once without a refresh, which still uses the old one: terraform apply -refresh=false."
	case errors.Is(err, context.DeadlineExceeded):
		detail += "\n\nThe operation took longer than the resource's timeouts allow. What was started goes on. " +
			"Terraform marks a resource whose creation timed out as tainted, and replaces it in the next apply; " +
			"terraform untaint keeps it."
	}
	diags.AddError(summary, detail)
}

// DestroyRegardless is added to errors of plans, as terraform destroy plans the whole configuration first.
const DestroyRegardless = "To destroy anyway, run terraform destroy -refresh=false: it skips what can't be " +
	"planned or read."

// AddDestroyRegardless adds [DestroyRegardless] to the last error of a plan or of a data source's read.
func AddDestroyRegardless(diags *diag.Diagnostics) {
	for i, d := range slices.Backward(*diags) {
		if d.Severity() != diag.SeverityError {
			continue
		}
		completed := diag.Diagnostic(diag.NewErrorDiagnostic(d.Summary(), d.Detail()+"\n\n"+DestroyRegardless))
		if located, ok := d.(diag.DiagnosticWithPath); ok {
			completed = diag.WithPath(located.Path(), completed)
		}
		(*diags)[i] = completed
		return
	}
}

// AddReadError adds the error of a data source that found nothing, or that could not find out.
func AddReadError(diags *diag.Diagnostics, at path.Path, what string, err error) {
	if errors.Is(err, engine.ErrNotFound) {
		diags.AddAttributeError(at, "Not found",
			fmt.Sprintf("There is no %s (%v). Check the names, the provider's state_dir, and the endpoint. If it is "+
				"created in the same configuration, add depends_on to the data source.", what, err))
		return
	}
	AddError(diags, "Unable to read "+what, err)
}
