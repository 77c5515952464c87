package provider

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// applying is a server whose applies report a warning.
type applying struct{ tfprotov6.ProviderServer }

func (applying) ApplyResourceChange(
	ctx context.Context, _ *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	engine.Warn(ctx, engine.Warning{Summary: "No copy", Detail: "Of \x1b[31mhost2."})
	return &tfprotov6.ApplyResourceChangeResponse{}, nil
}

// TestApplyWarns: an engine's warning is a diagnostic of the apply, and safe to print.
func TestApplyWarns(t *testing.T) {
	server := printableServer{next: warningServer{applying{}}}
	answer, err := server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Diagnostics) != 1 {
		t.Fatalf("got %v", answer.Diagnostics)
	}
	if d := answer.Diagnostics[0]; d.Severity != tfprotov6.DiagnosticSeverityWarning || d.Summary != "No copy" ||
		d.Detail == "" || d.Detail == "Of \x1b[31mhost2." {
		t.Errorf("got %+v", d)
	}
}
