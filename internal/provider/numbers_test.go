package provider

import (
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// filled returns a value of a type without nulls, in which numbers that may be fractions are 1/3.
func filled(t *testing.T, of attr.Type) tftypes.Value {
	t.Helper()
	as := of.TerraformType(t.Context())
	switch typ := of.(type) {
	case attr.TypeWithAttributeTypes:
		attributes, are := map[string]tftypes.Value{}, map[string]tftypes.Type{}
		for name, attribute := range typ.AttributeTypes() {
			attributes[name] = filled(t, attribute)
			are[name] = attributes[name].Type()
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: are}, attributes)
	case packed.Attribute:
		return tftypes.NewValue(typ.StandsFor(), map[string]tftypes.Value{})
	case attr.TypeWithElementType:
		if as.Is(tftypes.Map{}) {
			return tftypes.NewValue(as, map[string]tftypes.Value{"a": filled(t, typ.ElementType())})
		}
		return tftypes.NewValue(as, []tftypes.Value{filled(t, typ.ElementType())})
	}
	switch {
	case of.Equal(types.Int64Type):
		return tftypes.NewValue(as, 3)
	case as.Is(tftypes.Number):
		return tftypes.NewValue(as, providertest.Third())
	case as.Is(tftypes.Bool):
		return tftypes.NewValue(as, true)
	case as.Is(tftypes.String):
		return tftypes.NewValue(as, "2026-01-31T12:00:00Z") // where a time is needed, too
	}
	t.Fatalf("there is no value of type %s", of)
	return tftypes.Value{}
}

// schemasOf returns the types of all resources and data sources of the provider.
func schemasOf(t *testing.T, p provider.Provider) (resources, dataSources map[string]attr.Type) {
	t.Helper()
	resources, dataSources = map[string]attr.Type{}, map[string]attr.Type{}
	for _, instance := range p.Resources(t.Context()) {
		var of resource.MetadataResponse
		var described resource.SchemaResponse
		r := instance()
		r.Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: "trainyard"}, &of)
		r.Schema(t.Context(), resource.SchemaRequest{}, &described)
		resources[of.TypeName] = described.Schema.Type()
	}
	for _, instance := range p.DataSources(t.Context()) {
		var of datasource.MetadataResponse
		var described datasource.SchemaResponse
		d := instance()
		d.Metadata(t.Context(), datasource.MetadataRequest{ProviderTypeName: "trainyard"}, &of)
		d.Schema(t.Context(), datasource.SchemaRequest{}, &described)
		dataSources[of.TypeName] = described.Schema.Type()
	}
	return resources, dataSources
}

// filledValue returns the filled value of a type as Terraform sends it.
func filledValue(t *testing.T, of attr.Type) *tfprotov6.DynamicValue {
	t.Helper()
	v := filled(t, of)
	encoded, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		t.Fatal(err)
	}
	return &encoded
}

// Every resource and data source with numbers can be read into its model, as create, update, delete and refresh do.
func TestNumbersOfExpressionsAreRead(t *testing.T) {
	p := New("test", (&providertest.Stub{}).Registry())()
	tf := newTerraform(t, &providertest.Stub{})
	check := func(name string, diagnostics []*tfprotov6.Diagnostic, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range diagnostics {
			if strings.Contains(d.Detail, "error in the provider") {
				t.Errorf("%s: %s: %s (at %v)", name, d.Summary, d.Detail, d.Attribute)
			}
		}
	}
	var settings provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &settings)
	configured, err := NewServer("test", (&providertest.Stub{}).Registry()).ConfigureProvider(t.Context(),
		&tfprotov6.ConfigureProviderRequest{Config: filledValue(t, settings.Schema.Type())})
	check("provider", configured.Diagnostics, err)

	resources, dataSources := schemasOf(t, p)
	for name, of := range resources {
		resp, err := tf.server.ReadResource(t.Context(),
			&tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: filledValue(t, of)})
		check(name, resp.Diagnostics, err)
	}
	for name, of := range dataSources {
		resp, err := tf.server.ReadDataSource(t.Context(),
			&tfprotov6.ReadDataSourceRequest{TypeName: name, Config: filledValue(t, of)})
		check("data."+name, resp.Diagnostics, err)
	}
	ephemerals, ok := p.(provider.ProviderWithEphemeralResources)
	if !ok {
		t.Fatal("the provider has no ephemeral resources")
	}
	for _, instance := range ephemerals.EphemeralResources(t.Context()) {
		var of ephemeral.MetadataResponse
		var described ephemeral.SchemaResponse
		e := instance()
		e.Metadata(t.Context(), ephemeral.MetadataRequest{ProviderTypeName: "trainyard"}, &of)
		e.Schema(t.Context(), ephemeral.SchemaRequest{}, &described)
		resp, err := tf.server.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{
			TypeName: of.TypeName, Config: filledValue(t, described.Schema.Type()),
		})
		check("ephemeral."+of.TypeName, resp.Diagnostics, err)
	}
	functions, ok := p.(provider.ProviderWithFunctions)
	if !ok {
		t.Fatal("the provider has no functions")
	}
	for _, instance := range functions.Functions(t.Context()) {
		var of function.MetadataResponse
		var described function.DefinitionResponse
		f := instance()
		f.Metadata(t.Context(), function.MetadataRequest{}, &of)
		f.Definition(t.Context(), function.DefinitionRequest{}, &described)
		var arguments []*tfprotov6.DynamicValue
		for _, parameter := range described.Definition.Parameters {
			arguments = append(arguments, filledValue(t, parameter.GetType()))
		}
		resp, err := tf.server.CallFunction(t.Context(),
			&tfprotov6.CallFunctionRequest{Name: of.Name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if resp.Error != nil && strings.Contains(resp.Error.Text, "error in the provider") {
			t.Errorf("function %s: %s", of.Name, resp.Error.Text)
		}
	}
}

// A host's CPUs from an expression are kept in plan and state, and another plan finds no change.
func TestNumbersOfExpressionsAreKept(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	of, ok := cluster.Schema(t.Context(), nil).Attributes["hosts"].GetType().(attr.TypeWithElementType)
	if !ok {
		t.Fatal("hosts are no map")
	}
	hosts, diags := types.MapValueFrom(t.Context(), of.ElementType(),
		map[string]cluster.HostModel{"a": {Capacity: &cluster.CapacityModel{CPUs: providertest.Inexact(0.3)}}})
	if diags.HasError() {
		t.Fatal(diags)
	}
	config := tf.config("trainyard_cluster",
		map[string]tftypes.Value{"name": providertest.Text("lab"), "hosts": providertest.Raw(t, hosts)})
	cpusOf := func(cluster map[string]tftypes.Value) *big.Float {
		t.Helper()
		at := tftypes.NewAttributePath().WithElementKeyString("a").WithAttributeName("capacity").WithAttributeName(
			"cpus",
		)
		found, _, err := tftypes.WalkAttributePath(cluster["hosts"], at)
		value, ok := found.(tftypes.Value)
		var cpus *big.Float
		if err != nil || !ok || value.As(&cpus) != nil {
			t.Fatalf("there are no CPUs in %s: %v", cluster["hosts"], err)
		}
		return cpus
	}
	want := cpusOf(config)
	planned, diagnostics := tf.plan("trainyard_cluster", config, nil)
	fatalOn(t, nil, diagnostics)
	state, diagnostics := tf.applyCluster(config, nil, planned)
	fatalOn(t, nil, diagnostics)
	read, diagnostics := tf.read("trainyard_cluster", state)
	fatalOn(t, nil, diagnostics)
	again, diagnostics := tf.plan("trainyard_cluster", config, read)
	fatalOn(t, nil, diagnostics)
	for of, cluster := range map[string]map[string]tftypes.Value{
		"plan": planned, "state": state, "refreshed state": read, "second plan": again,
	} {
		if got := cpusOf(cluster); got.Cmp(want) != 0 {
			t.Errorf("%s has %s CPUs, want %s", of, got.Text('g', 80), want.Text('g', 80))
		}
	}
}

// A fraction for a whole number is reported as an error of the user.
func TestFractionsOfWholeNumbers(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	config := tf.group("g", role{replicas: 7777})
	roles, err := tftypes.Transform(config["roles"],
		func(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if v.Equal(tftypes.NewValue(tftypes.Number, 7777)) {
				return tftypes.NewValue(tftypes.Number, providertest.Third()), nil
			}
			return v, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	config["roles"] = roles
	messages := tf.validate("trainyard_group", tftypes.NewValue(tf.schemas["trainyard_group"].ValueType(), config))
	if len(messages) == 0 ||
		!strings.Contains(messages[0],
			`roles["worker"].replicas: only whole numbers are allowed here; use floor or ceil`) {
		t.Errorf("got %q", messages)
	}
}
