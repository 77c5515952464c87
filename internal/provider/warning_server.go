package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// warningServer adds the warnings of engine calls that succeeded to the diagnostics of an apply.
type warningServer struct{ tfprotov6.ProviderServer }

// ApplyResourceChange adds the warnings to the diagnostics.
func (s warningServer) ApplyResourceChange(
	ctx context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	ctx, warnings := engine.WithWarnings(ctx)
	answer, err := s.ProviderServer.ApplyResourceChange(ctx, request)
	if answer != nil {
		for _, w := range warnings.All() {
			answer.Diagnostics = append(answer.Diagnostics,
				&tfprotov6.Diagnostic{
					Severity: tfprotov6.DiagnosticSeverityWarning, Summary: w.Summary, Detail: w.Detail,
				})
		}
	}
	return answer, err
}
