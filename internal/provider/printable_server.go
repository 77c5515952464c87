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
type printableServer struct{ next tfprotov6.ProviderServer }

// printed returns an answer whose diagnostics, or function error, are safe to print.
func printed[T any](answer *T, err error) (*T, error) {
	if answer == nil {
		return nil, err
	}
	fields := reflect.ValueOf(answer).Elem()
	if f := fields.FieldByName("Diagnostics"); f.IsValid() {
		diagnostics, _ := reflect.TypeAssert[[]*tfprotov6.Diagnostic](f)
		for _, d := range diagnostics {
			d.Summary, d.Detail = printable.Line(d.Summary), linked(d.Summary, printable.Text(d.Detail))
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
func (s printableServer) GetMetadata(ctx context.Context, request *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return printed(s.next.GetMetadata(ctx, request))
}

// GetProviderSchema implements [tfprotov6.ProviderServer].
func (s printableServer) GetProviderSchema(ctx context.Context, request *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return printed(s.next.GetProviderSchema(ctx, request))
}

// GetResourceIdentitySchemas implements [tfprotov6.ProviderServer].
func (s printableServer) GetResourceIdentitySchemas(ctx context.Context, request *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return printed(s.next.GetResourceIdentitySchemas(ctx, request))
}

// ValidateProviderConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateProviderConfig(ctx context.Context, request *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return printed(s.next.ValidateProviderConfig(ctx, request))
}

// ConfigureProvider implements [tfprotov6.ProviderServer].
func (s printableServer) ConfigureProvider(ctx context.Context, request *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return printed(s.next.ConfigureProvider(ctx, request))
}

// StopProvider implements [tfprotov6.ProviderServer].
func (s printableServer) StopProvider(ctx context.Context, request *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return printed(s.next.StopProvider(ctx, request))
}

// ValidateResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateResourceConfig(ctx context.Context, request *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return printed(s.next.ValidateResourceConfig(ctx, request))
}

// UpgradeResourceState implements [tfprotov6.ProviderServer].
func (s printableServer) UpgradeResourceState(ctx context.Context, request *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return printed(s.next.UpgradeResourceState(ctx, request))
}

// ReadResource implements [tfprotov6.ProviderServer].
func (s printableServer) ReadResource(ctx context.Context, request *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return printed(s.next.ReadResource(ctx, request))
}

// PlanResourceChange implements [tfprotov6.ProviderServer].
func (s printableServer) PlanResourceChange(ctx context.Context, request *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return printed(s.next.PlanResourceChange(ctx, request))
}

// ApplyResourceChange implements [tfprotov6.ProviderServer].
func (s printableServer) ApplyResourceChange(ctx context.Context, request *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return printed(s.next.ApplyResourceChange(ctx, request))
}

// ImportResourceState implements [tfprotov6.ProviderServer].
func (s printableServer) ImportResourceState(ctx context.Context, request *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return printed(s.next.ImportResourceState(ctx, request))
}

// MoveResourceState implements [tfprotov6.ProviderServer].
func (s printableServer) MoveResourceState(ctx context.Context, request *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	return printed(s.next.MoveResourceState(ctx, request))
}

// UpgradeResourceIdentity implements [tfprotov6.ProviderServer].
func (s printableServer) UpgradeResourceIdentity(ctx context.Context, request *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return printed(s.next.UpgradeResourceIdentity(ctx, request))
}

// GenerateResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) GenerateResourceConfig(ctx context.Context, request *tfprotov6.GenerateResourceConfigRequest) (*tfprotov6.GenerateResourceConfigResponse, error) {
	return printed(s.next.GenerateResourceConfig(ctx, request))
}

// ValidateDataResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateDataResourceConfig(ctx context.Context, request *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return printed(s.next.ValidateDataResourceConfig(ctx, request))
}

// ReadDataSource implements [tfprotov6.ProviderServer].
func (s printableServer) ReadDataSource(ctx context.Context, request *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return printed(s.next.ReadDataSource(ctx, request))
}

// CallFunction implements [tfprotov6.ProviderServer].
func (s printableServer) CallFunction(ctx context.Context, request *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	return printed(s.next.CallFunction(ctx, request))
}

// GetFunctions implements [tfprotov6.ProviderServer].
func (s printableServer) GetFunctions(ctx context.Context, request *tfprotov6.GetFunctionsRequest) (*tfprotov6.GetFunctionsResponse, error) {
	return printed(s.next.GetFunctions(ctx, request))
}

// ValidateEphemeralResourceConfig implements [tfprotov6.ProviderServer].
func (s printableServer) ValidateEphemeralResourceConfig(ctx context.Context, request *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return printed(s.next.ValidateEphemeralResourceConfig(ctx, request))
}

// OpenEphemeralResource implements [tfprotov6.ProviderServer].
func (s printableServer) OpenEphemeralResource(ctx context.Context, request *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	return printed(s.next.OpenEphemeralResource(ctx, request))
}

// RenewEphemeralResource implements [tfprotov6.ProviderServer].
func (s printableServer) RenewEphemeralResource(ctx context.Context, request *tfprotov6.RenewEphemeralResourceRequest) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	return printed(s.next.RenewEphemeralResource(ctx, request))
}

// CloseEphemeralResource implements [tfprotov6.ProviderServer].
func (s printableServer) CloseEphemeralResource(ctx context.Context, request *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	return printed(s.next.CloseEphemeralResource(ctx, request))
}
