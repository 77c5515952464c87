package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// printableServer makes diagnostics of another server safe to print, as they quote members, agents and hosts, and links
// them to the troubleshooting guide. It does not embed the other server, so that the compiler reports calls that a
// later version of the protocol adds.
type printableServer struct {
	next tfprotov6.ProviderServer
	// guide is the address of the troubleshooting guide.
	guide string
}

// printed returns an answer whose diagnostics, or function error, are safe to print.
func printed[T any](guide string, answer *T, err error) (*T, error) {
	if answer == nil {
		return nil, err
	}
	fields := reflect.ValueOf(answer).Elem()
	if f := fields.FieldByName("Diagnostics"); f.IsValid() {
		diagnostics, _ := reflect.TypeAssert[[]*tfprotov6.Diagnostic](f)
		for _, d := range diagnostics {
			d.Summary, d.Detail = printable.Line(d.Summary), linked(guide, d.Summary, printable.Text(d.Detail))
		}
	}
	if f := fields.FieldByName("Error"); f.IsValid() {
		if failed, _ := reflect.TypeAssert[*tfprotov6.FunctionError](f); failed != nil {
			failed.Text = printable.Text(failed.Text)
		}
	}
	return answer, err
}

// GetMetadata implements [tfprotov6.ProviderServer].
func (s printableServer) GetMetadata(
	ctx context.Context, request *tfprotov6.GetMetadataRequest,
) (*tfprotov6.GetMetadataResponse, error) {
	answer, err := s.next.GetMetadata(ctx, request)
	return printed(s.guide, answer, err)
}

// GetProviderSchema implements [tfprotov6.ProviderServer].
func (s printableServer) GetProviderSchema(
	ctx context.Context, request *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	answer, err := s.next.GetProviderSchema(ctx, request)
	return printed(s.guide, answer, err)
}

// GetResourceIdentitySchemas implements [tfprotov6.ProviderServer].
func (s printableServer) GetResourceIdentitySchemas(
	ctx context.Context, request *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	answer, err := s.next.GetResourceIdentitySchemas(ctx, request)
	return printed(s.guide, answer, err)
}

// ValidateProviderConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateProviderConfig(
	ctx context.Context, request *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	answer, err := s.next.ValidateProviderConfig(ctx, request)
	return printed(s.guide, answer, err)
}

// ConfigureProvider implements [tfprotov6.ProviderServer].
func (s printableServer) ConfigureProvider(
	ctx context.Context, request *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	answer, err := s.next.ConfigureProvider(ctx, request)
	return printed(s.guide, answer, err)
}

// StopProvider implements [tfprotov6.ProviderServer].
func (s printableServer) StopProvider(
	ctx context.Context, request *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	answer, err := s.next.StopProvider(ctx, request)
	return printed(s.guide, answer, err)
}

// ValidateResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateResourceConfig(
	ctx context.Context, request *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	answer, err := s.next.ValidateResourceConfig(ctx, request)
	return printed(s.guide, answer, err)
}

// UpgradeResourceState implements [tfprotov6.ProviderServer].
func (s printableServer) UpgradeResourceState(
	ctx context.Context, request *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	answer, err := s.next.UpgradeResourceState(ctx, request)
	return printed(s.guide, answer, err)
}

// ReadResource implements [tfprotov6.ProviderServer].
func (s printableServer) ReadResource(
	ctx context.Context, request *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	answer, err := s.next.ReadResource(ctx, request)
	return printed(s.guide, answer, err)
}

// PlanResourceChange implements [tfprotov6.ProviderServer].
func (s printableServer) PlanResourceChange(
	ctx context.Context, request *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	answer, err := s.next.PlanResourceChange(ctx, request)
	return printed(s.guide, answer, err)
}

// ApplyResourceChange implements [tfprotov6.ProviderServer].
func (s printableServer) ApplyResourceChange(
	ctx context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	answer, err := s.next.ApplyResourceChange(ctx, request)
	return printed(s.guide, answer, err)
}

// ImportResourceState implements [tfprotov6.ProviderServer].
func (s printableServer) ImportResourceState(
	ctx context.Context, request *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	answer, err := s.next.ImportResourceState(ctx, request)
	return printed(s.guide, answer, err)
}

// MoveResourceState implements [tfprotov6.ProviderServer].
func (s printableServer) MoveResourceState(
	ctx context.Context, request *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	answer, err := s.next.MoveResourceState(ctx, request)
	return printed(s.guide, answer, err)
}

// UpgradeResourceIdentity implements [tfprotov6.ProviderServer].
func (s printableServer) UpgradeResourceIdentity(
	ctx context.Context, request *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	answer, err := s.next.UpgradeResourceIdentity(ctx, request)
	return printed(s.guide, answer, err)
}

// GenerateResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) GenerateResourceConfig(
	ctx context.Context, request *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	answer, err := s.next.GenerateResourceConfig(ctx, request)
	return printed(s.guide, answer, err)
}

// ValidateDataResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateDataResourceConfig(
	ctx context.Context, request *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	answer, err := s.next.ValidateDataResourceConfig(ctx, request)
	return printed(s.guide, answer, err)
}

// ReadDataSource implements [tfprotov6.ProviderServer].
func (s printableServer) ReadDataSource(
	ctx context.Context, request *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	answer, err := s.next.ReadDataSource(ctx, request)
	return printed(s.guide, answer, err)
}

// CallFunction implements [tfprotov6.ProviderServer].
func (s printableServer) CallFunction(
	ctx context.Context, request *tfprotov6.CallFunctionRequest,
) (*tfprotov6.CallFunctionResponse, error) {
	answer, err := s.next.CallFunction(ctx, request)
	return printed(s.guide, answer, err)
}

// GetFunctions implements [tfprotov6.ProviderServer].
func (s printableServer) GetFunctions(
	ctx context.Context, request *tfprotov6.GetFunctionsRequest,
) (*tfprotov6.GetFunctionsResponse, error) {
	answer, err := s.next.GetFunctions(ctx, request)
	return printed(s.guide, answer, err)
}

// ValidateEphemeralResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateEphemeralResourceConfig(
	ctx context.Context, request *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	answer, err := s.next.ValidateEphemeralResourceConfig(ctx, request)
	return printed(s.guide, answer, err)
}

// OpenEphemeralResource implements [tfprotov6.ProviderServer].
func (s printableServer) OpenEphemeralResource(
	ctx context.Context, request *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	answer, err := s.next.OpenEphemeralResource(ctx, request)
	return printed(s.guide, answer, err)
}

// RenewEphemeralResource implements [tfprotov6.ProviderServer].
func (s printableServer) RenewEphemeralResource(
	ctx context.Context, request *tfprotov6.RenewEphemeralResourceRequest,
) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	answer, err := s.next.RenewEphemeralResource(ctx, request)
	return printed(s.guide, answer, err)
}

// CloseEphemeralResource implements [tfprotov6.ProviderServer].
func (s printableServer) CloseEphemeralResource(
	ctx context.Context, request *tfprotov6.CloseEphemeralResourceRequest,
) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	answer, err := s.next.CloseEphemeralResource(ctx, request)
	return printed(s.guide, answer, err)
}
