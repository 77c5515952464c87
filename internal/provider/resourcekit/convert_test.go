package resourcekit

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestSameDurationKeepsTheStored(t *testing.T) {
	for name, test := range map[string]struct{ state, plan, want types.String }{
		"equal, in other words": {types.StringValue("1m0s"), types.StringValue("60s"), types.StringValue("1m0s")},
		"changed":               {types.StringValue("1m0s"), types.StringValue("61s"), types.StringValue("61s")},
		"new":                   {types.StringNull(), types.StringValue("60s"), types.StringValue("60s")},
		"taken away":            {types.StringValue("1m0s"), types.StringNull(), types.StringNull()},
		"unknown":               {types.StringValue("1m0s"), types.StringUnknown(), types.StringUnknown()},
	} {
		req := planmodifier.StringRequest{StateValue: test.state, PlanValue: test.plan}
		resp := planmodifier.StringResponse{PlanValue: test.plan}
		SameDuration().PlanModifyString(t.Context(), req, &resp)
		if !resp.PlanValue.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", name, resp.PlanValue, test.want)
		}
	}
}

func TestSettled(t *testing.T) {
	text := func(v any) tftypes.Value { return tftypes.NewValue(tftypes.String, v) }
	texts := tftypes.List{ElementType: tftypes.String}
	textMap := tftypes.Map{ElementType: tftypes.String}
	object := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.String, "b": texts}}
	null := tftypes.NewValue(texts, nil)
	for name, test := range map[string]struct {
		value tftypes.Value
		want  bool
	}{
		"a value":            {text("x"), true},
		"null":               {text(nil), true},
		"unknown":            {text(tftypes.UnknownValue), false},
		"a list":             {tftypes.NewValue(texts, []tftypes.Value{text("x")}), true},
		"an unknown element": {tftypes.NewValue(texts, []tftypes.Value{text(tftypes.UnknownValue)}), false},
		"a null element":     {tftypes.NewValue(texts, []tftypes.Value{text(nil)}), false},
		"a map":              {tftypes.NewValue(textMap, map[string]tftypes.Value{"k": text("x")}), true},
		"an unknown map":     {tftypes.NewValue(textMap, tftypes.UnknownValue), false},
		"a null in a map":    {tftypes.NewValue(textMap, map[string]tftypes.Value{"k": text(nil)}), false},
		"an unknown in a map": {
			tftypes.NewValue(textMap, map[string]tftypes.Value{"k": text(tftypes.UnknownValue)}), false,
		},
		"nulls in an object": {tftypes.NewValue(object, map[string]tftypes.Value{"a": text(nil), "b": null}), true},
		"an unknown attribute": {
			tftypes.NewValue(object, map[string]tftypes.Value{"a": text(tftypes.UnknownValue), "b": null}), false,
		},
		"deep down in a object": {tftypes.NewValue(object,
			map[string]tftypes.Value{"a": text("x"), "b": tftypes.NewValue(texts, []tftypes.Value{text(nil)})}), false},
	} {
		if got := settled(test.value); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
	partly := tftypes.NewValue(object, map[string]tftypes.Value{"a": text(tftypes.UnknownValue), "b": null})
	if !SettledAttributes(partly, "a") || SettledAttributes(partly, "b") {
		t.Error("settledAttributes does not leave out just the attributes named")
	}
	if !partly.Equal(tftypes.NewValue(object, map[string]tftypes.Value{"a": text(tftypes.UnknownValue), "b": null})) {
		t.Error("settledAttributes changed the object")
	}
}

func TestMoment(t *testing.T) {
	var never time.Time
	if !Moment(nil).IsNull() || !Moment(&never).IsNull() {
		t.Error("a time that never was is not null")
	}
	at := time.Date(2026, 1, 31, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	if got := Moment(&at).ValueString(); got != "2026-01-31T12:00:00Z" {
		t.Errorf("got %s", got)
	}
}
