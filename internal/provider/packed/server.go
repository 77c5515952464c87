package packed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/vmihailenco/msgpack/v5"
)

// Server packs attributes on their way to a provider's server, and unpacks them on the way back.
type Server struct {
	tfprotov6.ProviderServer
	// packed are the types that packed attributes stand for, by resource and name.
	packed map[string]map[string]tftypes.Type
}

// object is a resource as Terraform encodes it; null values are nil.
type object map[string]msgpack.RawMessage

// NewServer returns a server in front of a provider's. The provider's schemas say which attributes are packed.
func NewServer(ctx context.Context, p provider.Provider, next tfprotov6.ProviderServer) Server {
	var known provider.MetadataResponse
	p.Metadata(ctx, provider.MetadataRequest{}, &known)
	packed := map[string]map[string]tftypes.Type{}
	for _, instance := range p.Resources(ctx) {
		var of resource.MetadataResponse
		var described resource.SchemaResponse
		r := instance()
		r.Metadata(ctx, resource.MetadataRequest{ProviderTypeName: known.TypeName}, &of)
		r.Schema(ctx, resource.SchemaRequest{}, &described)
		for name, attribute := range described.Schema.Attributes {
			if a, ok := attribute.GetType().(Attribute); ok {
				if packed[of.TypeName] == nil {
					packed[of.TypeName] = map[string]tftypes.Type{}
				}
				packed[of.TypeName][name] = a.StandsFor()
			}
		}
	}
	return Server{next, packed}
}

// GetProviderSchema implements [tfprotov6.ProviderServer].
func (s Server) GetProviderSchema(
	ctx context.Context, request *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	response, err := s.ProviderServer.GetProviderSchema(ctx, request)
	if err != nil {
		return nil, err
	}
	for name, schema := range response.ResourceSchemas {
		for _, a := range schema.Block.Attributes {
			if standsFor, found := s.packed[name][a.Name]; found {
				a.Type = standsFor
			}
		}
	}
	return response, nil
}

// ValidateResourceConfig implements [tfprotov6.ProviderServer].
func (s Server) ValidateResourceConfig(
	ctx context.Context, request *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	r := *request
	if err := s.pack(r.TypeName, &r.Config); err != nil {
		return nil, err
	}
	return s.ProviderServer.ValidateResourceConfig(ctx, &r)
}

// UpgradeResourceState implements [tfprotov6.ProviderServer]. A stored state is JSON; its packed attributes
// bypass the other server.
func (s Server) UpgradeResourceState(
	ctx context.Context, request *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	r := *request
	past, err := s.takeOut(r.TypeName, &r.RawState)
	if err != nil {
		return nil, err
	}
	response, err := s.ProviderServer.UpgradeResourceState(ctx, &r)
	if err != nil || len(past) == 0 {
		return response, err
	}
	return response, edit(&response.UpgradedState, func(o object) error {
		maps.Copy(o, past)
		return nil
	})
}

// ReadResource implements [tfprotov6.ProviderServer].
func (s Server) ReadResource(
	ctx context.Context, request *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	r := *request
	if err := s.pack(r.TypeName, &r.CurrentState); err != nil {
		return nil, err
	}
	response, err := s.ProviderServer.ReadResource(ctx, &r)
	if err != nil {
		return nil, err
	}
	return response, s.unpack(r.TypeName, &response.NewState)
}

// PlanResourceChange implements [tfprotov6.ProviderServer].
func (s Server) PlanResourceChange(
	ctx context.Context, request *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	r := *request
	if err := s.pack(r.TypeName, &r.Config, &r.PriorState, &r.ProposedNewState); err != nil {
		return nil, err
	}
	response, err := s.ProviderServer.PlanResourceChange(ctx, &r)
	if err != nil {
		return nil, err
	}
	return response, s.unpack(r.TypeName, &response.PlannedState)
}

// ApplyResourceChange implements [tfprotov6.ProviderServer].
func (s Server) ApplyResourceChange(
	ctx context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	r := *request
	if err := s.pack(r.TypeName, &r.Config, &r.PriorState, &r.PlannedState); err != nil {
		return nil, err
	}
	response, err := s.ProviderServer.ApplyResourceChange(ctx, &r)
	if err != nil {
		return nil, err
	}
	return response, s.unpack(r.TypeName, &response.NewState)
}

// ImportResourceState implements [tfprotov6.ProviderServer].
func (s Server) ImportResourceState(
	ctx context.Context, request *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	response, err := s.ProviderServer.ImportResourceState(ctx, request)
	if err != nil {
		return nil, err
	}
	for _, imported := range response.ImportedResources {
		if err := s.unpack(imported.TypeName, &imported.State); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// MoveResourceState implements [tfprotov6.ProviderServer].
func (s Server) MoveResourceState(
	ctx context.Context, request *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	response, err := s.ProviderServer.MoveResourceState(ctx, request)
	if err != nil {
		return nil, err
	}
	return response, s.unpack(request.TargetTypeName, &response.TargetState)
}

// GenerateResourceConfig implements [tfprotov6.ProviderServer].
func (s Server) GenerateResourceConfig(
	ctx context.Context, request *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	r := *request
	if err := s.pack(r.TypeName, &r.State); err != nil {
		return nil, err
	}
	response, err := s.ProviderServer.GenerateResourceConfig(ctx, &r)
	if err != nil {
		return nil, err
	}
	return response, s.unpack(r.TypeName, &response.Config)
}

// pack packs attributes of a resource. Values that are null or unknown as a whole stay so.
func (s Server) pack(resource string, values ...**tfprotov6.DynamicValue) error {
	return s.each(resource, values, func(encoded msgpack.RawMessage) (msgpack.RawMessage, error) {
		return msgpack.Marshal(string(encoded))
	})
}

// unpack reverses pack.
func (s Server) unpack(resource string, values ...**tfprotov6.DynamicValue) error {
	return s.each(resource, values, func(held msgpack.RawMessage) (msgpack.RawMessage, error) {
		var encoded string
		err := msgpack.Unmarshal(held, &encoded)
		return msgpack.RawMessage(encoded), err
	})
}

// takeOut removes the packed attributes from a stored state, and returns them as Terraform encodes them.
func (s Server) takeOut(resource string, state **tfprotov6.RawState) (object, error) {
	out := object{}
	if *state == nil || len(s.packed[resource]) == 0 {
		return out, nil
	}
	var stored map[string]json.RawMessage
	if err := json.Unmarshal((*state).JSON, &stored); err != nil {
		return nil, fmt.Errorf("%s: %w", resource, err)
	}
	for name, standsFor := range s.packed[resource] {
		if _, found := stored[name]; !found {
			continue
		}
		v, err := tfprotov6.RawState{JSON: stored[name]}.Unmarshal(standsFor)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", resource, name, err)
		}
		encoded, err := tfprotov6.NewDynamicValue(standsFor, v)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", resource, name, err)
		}
		out[name] = encoded.MsgPack
		delete(stored, name)
	}
	rest, err := json.Marshal(stored)
	*state = &tfprotov6.RawState{JSON: rest}
	return out, err
}

func (s Server) each(
	resource string, values []**tfprotov6.DynamicValue, change func(msgpack.RawMessage) (msgpack.RawMessage, error),
) error {
	if len(s.packed[resource]) == 0 {
		return nil
	}
	for _, v := range values {
		err := edit(v, func(o object) error {
			for name := range s.packed[resource] {
				if before := o[name]; before != nil && !isGap(before[0]) {
					changed, err := change(before)
					if err != nil {
						return fmt.Errorf("%s.%s: %w", resource, name, err)
					}
					o[name] = changed
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// edit changes attributes of a resource, if there is one.
func edit(v **tfprotov6.DynamicValue, change func(object) error) error {
	if *v == nil {
		return nil
	}
	var o object
	if err := msgpack.Unmarshal((*v).MsgPack, &o); err != nil || o == nil {
		return err
	}
	if err := change(o); err != nil {
		return err
	}
	encoded, err := msgpack.Marshal(o)
	*v = &tfprotov6.DynamicValue{MsgPack: encoded}
	return err
}
