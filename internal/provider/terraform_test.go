package provider

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// terraform plans resources as Terraform does, one after another in one run.
type terraform struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schemas map[string]*tfprotov6.Schema
}

func newTerraform(t *testing.T, stub *providertest.Stub) terraform {
	t.Helper()
	return terraformOn(t, stub.Registry())
}

func terraformOn(t *testing.T, engines engine.Registry) terraform {
	t.Helper()
	server := NewServer("test", engines)
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	fatalOn(t, err, schemas.Diagnostics)
	config := encode(t, schemas.Provider, tftypes.NewValue(schemas.Provider.ValueType(), nullsOf(schemas.Provider)))
	resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	fatalOn(t, err, resp.Diagnostics)
	return terraform{t, server, schemas.ResourceSchemas}
}

// encode encodes a value as Terraform does, which sorts maps by key.
func encode(t *testing.T, s *tfprotov6.Schema, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(s.ValueType(), v)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := s.ValueType().MarshalJSON() //nolint:staticcheck // the only way from its types to Terraform's own
	if err != nil {
		t.Fatal(err)
	}
	typ, err := ctyjson.UnmarshalType(signature)
	if err != nil {
		t.Fatal(err)
	}
	held, err := ctymsgpack.Unmarshal(encoded.MsgPack, typ)
	if err != nil {
		t.Fatal(err)
	}
	if encoded.MsgPack, err = ctymsgpack.Marshal(held, typ); err != nil {
		t.Fatal(err)
	}
	return &encoded
}

// plan plans a resource, and returns the planned attributes. A nil config plans its destruction, a nil prior its
// creation. Computed attributes of the prior state are proposed, as Terraform does.
func (tf terraform) plan(
	name string, config, prior map[string]tftypes.Value,
) (planned map[string]tftypes.Value, diagnostics []*tfprotov6.Diagnostic) {
	tf.t.Helper()
	s := tf.schemas[name]
	proposed := maps.Clone(config)
	for _, a := range s.Block.Attributes {
		if config != nil && a.Computed && config[a.Name].IsNull() && prior != nil {
			proposed[a.Name] = prior[a.Name]
		}
	}
	resp, err := tf.server.PlanResourceChange(tf.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         name,
		Config:           tf.object(name, config),
		PriorState:       tf.object(name, prior),
		ProposedNewState: tf.object(name, proposed),
	})
	if err != nil {
		tf.t.Fatal(err)
	}
	return tf.attributes(name, resp.PlannedState), resp.Diagnostics
}

// applyCluster applies the plan of a cluster, and returns the new state.
func (tf terraform) applyCluster(
	config, prior, planned map[string]tftypes.Value,
) (state map[string]tftypes.Value, diagnostics []*tfprotov6.Diagnostic) {
	tf.t.Helper()
	return tf.apply("trainyard_cluster", config, prior, planned)
}

// apply applies the plan of a resource, and returns the new state.
func (tf terraform) apply(
	name string, config, prior, planned map[string]tftypes.Value,
) (state map[string]tftypes.Value, diagnostics []*tfprotov6.Diagnostic) {
	tf.t.Helper()
	state, _, diagnostics = tf.applyKnowing(nil, name, config, prior, planned)
	return state, diagnostics
}

// applyKnowing is apply with the provider's private state, as planned and as applied.
func (tf terraform) applyKnowing(
	private []byte, name string, config, prior, planned map[string]tftypes.Value,
) (state map[string]tftypes.Value, applied []byte, diagnostics []*tfprotov6.Diagnostic) {
	tf.t.Helper()
	resp, err := tf.server.ApplyResourceChange(tf.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: name, Config: tf.object(name, config), PriorState: tf.object(name, prior),
		PlannedState: tf.object(name, planned), PlannedPrivate: private,
	})
	if err != nil {
		tf.t.Fatal(err)
	}
	return tf.attributes(name, resp.NewState), resp.Private, resp.Diagnostics
}

// read refreshes a state; found is nil if it is gone.
func (tf terraform) read(
	name string, state map[string]tftypes.Value,
) (found map[string]tftypes.Value, diagnostics []*tfprotov6.Diagnostic) {
	tf.t.Helper()
	resp, err := tf.server.ReadResource(tf.t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: tf.object(name, state)})
	if err != nil {
		tf.t.Fatal(err)
	}
	return tf.attributes(name, resp.NewState), resp.Diagnostics
}

// object encodes a resource; nil for one that does not exist.
func (tf terraform) object(name string, attributes map[string]tftypes.Value) *tfprotov6.DynamicValue {
	tf.t.Helper()
	s := tf.schemas[name]
	if attributes == nil {
		return encode(tf.t, s, tftypes.NewValue(s.ValueType(), nil))
	}
	return encode(tf.t, s, tftypes.NewValue(s.ValueType(), attributes))
}

// attributes decodes a resource.
func (tf terraform) attributes(name string, encoded *tfprotov6.DynamicValue) (attributes map[string]tftypes.Value) {
	tf.t.Helper()
	if encoded == nil {
		return nil
	}
	v, err := encoded.Unmarshal(tf.schemas[name].ValueType())
	if err == nil && !v.IsNull() {
		err = v.As(&attributes)
	}
	if err != nil {
		tf.t.Fatal(err)
	}
	return attributes
}

// config returns a configuration with only these attributes set.
func (tf terraform) config(name string, set map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	all := nullsOf(tf.schemas[name])
	maps.Copy(all, set)
	return all
}

// nullsOf returns the attributes of a schema, all null.
func nullsOf(s *tfprotov6.Schema) map[string]tftypes.Value {
	all := map[string]tftypes.Value{}
	for _, a := range s.Block.Attributes {
		all[a.Name] = tftypes.NewValue(a.ValueType(), nil)
	}
	return all
}

// role is what tests set for the role "worker" of a group.
type role struct {
	replicas, port int64 // a port of 0 is left out
	cpus           float64
}

// group returns the configuration of a group with one role.
func (tf terraform) group(name string, r role) map[string]tftypes.Value {
	tf.t.Helper()
	m := group.RoleModel{Replicas: &r.replicas, TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}}}
	if r.port != 0 {
		m.Port = &r.port
	}
	if r.cpus != 0 {
		m.Resources = &group.ResourcesModel{CPUs: types.Float64Value(r.cpus)}
	}
	return tf.groupOf(name, m)
}

// groupOf returns the configuration of a group with the role "worker".
func (tf terraform) groupOf(name string, m group.RoleModel) map[string]tftypes.Value {
	tf.t.Helper()
	roles, ok := group.Schema(tf.t.Context(), nil).Attributes["roles"].GetType().(types.MapType)
	if !ok {
		tf.t.Fatal("roles are no map")
	}
	value, diags := types.MapValueFrom(tf.t.Context(), roles.ElemType, map[string]group.RoleModel{"worker": m})
	if diags.HasError() {
		tf.t.Fatal(diags)
	}
	return tf.config("trainyard_group", map[string]tftypes.Value{
		"name":    providertest.Text(name),
		"cluster": labReference(nil),
		"roles":   providertest.Raw(tf.t, value),
	})
}

// labReference refers to the cluster "lab" of the default engine, at an endpoint or nil.
func labReference(endpoint any) tftypes.Value {
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"name": tftypes.String, "engine": tftypes.String, "endpoint": tftypes.String,
	}}
	return tftypes.NewValue(typ, map[string]tftypes.Value{
		"name": providertest.Text("lab"), "engine": tftypes.NewValue(tftypes.String, nil),
		"endpoint": tftypes.NewValue(tftypes.String, endpoint),
	})
}
