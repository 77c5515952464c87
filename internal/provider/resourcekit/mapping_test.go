package resourcekit

import (
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// TestFlattenKeepsSpelling: values that mean the same keep their spelling, and others are written as in documents.
func TestFlattenKeepsSpelling(t *testing.T) {
	type document struct {
		Text     string            `json:"text,omitempty"`
		List     []string          `json:"list,omitempty"`
		Map      map[string]string `json:"map,omitempty"`
		Duration *domain.Duration  `json:"duration,omitempty"`
		Mode     domain.FileMode   `json:"mode,omitempty"`
		Number   float64           `json:"number"`
	}
	type model struct {
		Text     *string           `tfsdk:"text"`
		List     []string          `tfsdk:"list"`
		Map      map[string]string `tfsdk:"map"`
		Duration types.String      `tfsdk:"duration"`
		Mode     types.String      `tfsdk:"mode"`
		Number   types.Float64     `tfsdk:"number"`
	}
	text, zero := types.StringValue, types.Float64Value(0)
	minute := domain.Duration(time.Minute)
	for name, test := range map[string]struct {
		from        document
		prior, want model
	}{
		"nothing stays null":     {document{}, model{Number: zero}, model{Number: zero}},
		"a number is never null": {document{}, model{}, model{Number: zero}},
		"nothing stays empty": {
			document{}, model{Text: new(""), List: []string{}, Map: map[string]string{}, Number: zero},
			model{Text: new(""), List: []string{}, Map: map[string]string{}, Number: zero},
		},
		"what went is null": {document{}, model{
			Text: new("a"), List: []string{"a"}, Map: map[string]string{"a": "a"}, Duration: text("1m"),
			Mode: text("0444"), Number: types.Float64Value(1),
		}, model{Number: zero}},
		"what came is taken": {document{"a", []string{"a"}, map[string]string{"a": "a"}, &minute, 4, 1}, model{}, model{
			new("a"), []string{"a"}, map[string]string{"a": "a"}, text("1m0s"), text("0004"), types.Float64Value(1),
		}},
		"what changed is taken": {
			document{Text: "b", List: []string{"b"}, Duration: &minute, Mode: 0o400},
			model{Text: new(""), List: []string{"a"}, Duration: text("61s"), Mode: text("444"), Number: zero},
			model{Text: new("b"), List: []string{"b"}, Duration: text("1m0s"), Mode: text("0400"), Number: zero},
		},
		"the same in other words": {
			document{Duration: &minute, Mode: 0o444, Number: 0.1},
			model{Duration: text("60s"), Mode: text("444"), Number: providertest.Inexact(0.1)},
			model{Duration: text("60s"), Mode: text("444"), Number: providertest.Inexact(0.1)},
		},
		"no duration is not one of nothing": {
			document{Duration: new(domain.Duration(0))}, model{Number: zero}, model{Duration: text("0s"), Number: zero},
		},
		"what was unknown is known": {
			document{}, model{Duration: types.StringUnknown(), Number: types.Float64Unknown()}, model{Number: zero},
		},
	} {
		if got := Flatten(test.from, test.prior); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
