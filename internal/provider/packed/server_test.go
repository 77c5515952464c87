package packed

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"
)

type nested = map[string]map[string]string

// fakeProvider has the resource test_thing, whose state is its configuration.
type fakeProvider struct{ provider.Provider }

func (fakeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "test"
}

func (fakeProvider) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (fakeProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return thing{} }}
}

func (fakeProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

type thing struct{}

type thingModel struct {
	Name  string        `tfsdk:"name"`
	Texts Value[nested] `tfsdk:"texts"`
}

func (thing) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_thing"
}

func (thing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"name": schema.StringAttribute{Required: true},
		"texts": schema.StringAttribute{
			Optional: true, CustomType: Type[nested]{}, Validators: []validator.String{NoNullValues()},
		},
	}}
}

func (thing) Create(_ context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (thing) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func (thing) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (thing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

func (thing) ImportState(ctx context.Context, _ resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resp.Diagnostics.Append(resp.State.Set(ctx, thingModel{"imported", Of(nested{"a": {"b": "c"}})})...)
}

func (thing) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{
		{StateMover: func(ctx context.Context, _ resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			resp.Diagnostics.Append(resp.TargetState.Set(ctx, thingModel{"moved", Of(nested{"a": {"b": "c"}})})...)
		}},
	}
}

var (
	textsType = tftypes.Map{ElementType: tftypes.Map{ElementType: tftypes.String}}
	thingType = tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String, "texts": textsType}}
)

func newServer(t *testing.T) Server {
	t.Helper()
	return NewServer(t.Context(), fakeProvider{}, providerserver.NewProtocol6(fakeProvider{})())
}

func thingOf(texts tftypes.Value) tftypes.Value {
	return tftypes.NewValue(thingType,
		map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, "x"), "texts": texts})
}

func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

// draw draws a value of a type, in which anything may be null or, with open, unknown.
func draw(of tftypes.Type, open bool) *rapid.Generator[tftypes.Value] {
	return rapid.Custom(func(t *rapid.T) tftypes.Value {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		switch m, isMap := of.(tftypes.Map); {
		case kind == 0:
			return tftypes.NewValue(of, nil)
		case kind == 1 && open:
			return tftypes.NewValue(of, tftypes.UnknownValue)
		case isMap:
			return tftypes.NewValue(of,
				rapid.MapOfN(rapid.String(), draw(m.ElementType, open), 0, 20).Draw(t, "elements"))
		}
		return tftypes.NewValue(of, rapid.StringN(0, 40, -1).Draw(t, "text"))
	})
}

func encoded(t require, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &d
}

type require interface {
	Helper()
	Fatalf(format string, args ...any)
}

// wantSame fails unless an answer is the value that was sent.
func wantSame(
	t require, call string, want tftypes.Value, got *tfprotov6.DynamicValue, diagnostics []*tfprotov6.Diagnostic,
	err error,
) {
	t.Helper()
	if err != nil || len(diagnostics) > 0 {
		t.Fatalf("%s: %v %+v", call, err, diagnostics)
	}
	v, err := got.Unmarshal(thingType)
	if err != nil || !v.Equal(want) {
		t.Fatalf("%s: got %s (%v), want %s", call, v, err, want)
	}
}

// What Terraform sends is returned unchanged, whatever in it is null or unknown.
func TestServerIsTransparent(t *testing.T) {
	s, ctx := newServer(t), t.Context()
	rapid.Check(t, func(t *rapid.T) {
		open := thingOf(draw(textsType, true).Draw(t, "planned"))
		planned, err := s.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
			TypeName: "test_thing", Config: encoded(t, open), ProposedNewState: encoded(t, open),
			PriorState: encoded(t, thingOf(draw(textsType, false).Draw(t, "prior"))),
		})
		wantSame(t, "plan", open, planned.PlannedState, planned.Diagnostics, err)

		texts := draw(textsType, false).Draw(t, "texts")
		known, none := thingOf(texts), encoded(t, tftypes.NewValue(thingType, nil))
		created, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
			TypeName: "test_thing", Config: encoded(t, known), PlannedState: encoded(t, known), PriorState: none,
		})
		wantSame(t, "create", known, created.NewState, created.Diagnostics, err)
		updated, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
			TypeName: "test_thing", Config: encoded(t, known), PlannedState: encoded(t, known),
			PriorState: encoded(t, known),
		})
		wantSame(t, "update", known, updated.NewState, updated.Diagnostics, err)
		read, err := s.ReadResource(ctx,
			&tfprotov6.ReadResourceRequest{TypeName: "test_thing", CurrentState: encoded(t, known)})
		wantSame(t, "read", known, read.NewState, read.Diagnostics, err)
		generated, err := s.GenerateResourceConfig(ctx,
			&tfprotov6.GenerateResourceConfigRequest{TypeName: "test_thing", State: encoded(t, known)})
		wantSame(t, "generate", known, generated.Config, generated.Diagnostics, err)
		stored, err := json.Marshal(map[string]any{"name": "x", "texts": plain(t, texts)})
		if err != nil {
			t.Fatalf("%v", err)
		}
		upgraded, err := s.UpgradeResourceState(ctx,
			&tfprotov6.UpgradeResourceStateRequest{TypeName: "test_thing", RawState: &tfprotov6.RawState{JSON: stored}})
		wantSame(t, "upgrade", known, upgraded.UpgradedState, upgraded.Diagnostics, err)
	})
}

// plain returns a value as encoding/json would decode it.
func plain(t require, v tftypes.Value) any {
	t.Helper()
	var s string
	var elements map[string]tftypes.Value
	switch {
	case v.IsNull():
		return nil
	case v.As(&s) == nil:
		return s
	case v.As(&elements) != nil:
		t.Fatalf("%s is neither a text nor a map", v)
	}
	m := map[string]any{}
	for key, element := range elements {
		m[key] = plain(t, element)
	}
	return m
}

// Answers for a resource that is gone, moved, imported, or stored without the attribute.
func TestServerUnpacksAnswers(t *testing.T) {
	s, ctx := newServer(t), t.Context()
	was := thingOf(tftypes.NewValue(textsType, map[string]tftypes.Value{}))
	gone := tftypes.NewValue(thingType, nil)
	deleted, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "test_thing", Config: encoded(t, gone), PlannedState: encoded(t, gone), PriorState: encoded(t, was),
	})
	wantSame(t, "delete", gone, deleted.NewState, deleted.Diagnostics, err)

	one := tftypes.NewValue(textsType,
		map[string]tftypes.Value{
			"a": tftypes.NewValue(textsType.ElementType, map[string]tftypes.Value{"b": text("c")}),
		})
	called := func(name string) tftypes.Value {
		return tftypes.NewValue(thingType, map[string]tftypes.Value{"name": text(name), "texts": one})
	}
	imported, err := s.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "test_thing", ID: "x"})
	if err != nil || len(imported.ImportedResources) != 1 {
		t.Fatalf("%v %+v", err, imported)
	}
	wantSame(t, "import", called("imported"), imported.ImportedResources[0].State, imported.Diagnostics, err)
	moved, err := s.MoveResourceState(ctx, &tfprotov6.MoveResourceStateRequest{
		TargetTypeName: "test_thing", SourceTypeName: "test_other",
		SourceState: &tfprotov6.RawState{JSON: []byte("{}")},
	})
	wantSame(t, "move", called("moved"), moved.TargetState, moved.Diagnostics, err)

	upgraded, err := s.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: "test_thing", RawState: &tfprotov6.RawState{JSON: []byte(`{"name": "x"}`)},
	})
	wantSame(t, "upgrade of what was stored without it", thingOf(tftypes.NewValue(textsType, nil)),
		upgraded.UpgradedState, upgraded.Diagnostics, err)
	if _, err := s.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: "test_thing", RawState: &tfprotov6.RawState{JSON: []byte(`{"name": "x", "texts": 3}`)},
	}); err == nil {
		t.Error("a state of another type was read")
	}
}

// Terraform sees the type that a packed attribute stands for.
func TestServerDeclaresWhatIsPacked(t *testing.T) {
	schemas, err := newServer(t).GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || len(schemas.Diagnostics) > 0 {
		t.Fatalf("%v %+v", err, schemas)
	}
	if got := schemas.ResourceSchemas["test_thing"].ValueType(); !got.Equal(thingType) {
		t.Errorf("got %s, want %s", got, thingType)
	}
}

// A null is refused at its path, and unknown values are left alone.
func TestNullValuesAreRefused(t *testing.T) {
	inner := func(v any) tftypes.Value {
		return tftypes.NewValue(textsType.ElementType,
			map[string]tftypes.Value{"x": text("1"), "y": tftypes.NewValue(tftypes.String, v)})
	}
	for name, test := range map[string]struct {
		a  tftypes.Value
		at path.Path
	}{
		"none":       {inner("2"), path.Empty()},
		"an unknown": {inner(tftypes.UnknownValue), path.Empty()},
		"a text":     {inner(nil), path.Root("texts").AtMapKey("a").AtMapKey("y")},
		"a map":      {tftypes.NewValue(textsType.ElementType, nil), path.Root("texts").AtMapKey("a")},
	} {
		config := thingOf(tftypes.NewValue(textsType, map[string]tftypes.Value{"a": test.a, "b": inner("3")}))
		resp, err := newServer(t).ValidateResourceConfig(t.Context(),
			&tfprotov6.ValidateResourceConfigRequest{TypeName: "test_thing", Config: encoded(t, config)})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range resp.Diagnostics {
			got += d.Detail
		}
		want := ""
		if steps := test.at.Steps(); len(steps) > 0 {
			want = test.at.String() + " is null: leave it out, or give it a value"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
