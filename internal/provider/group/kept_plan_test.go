package group

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// TestKeepPlan: known values of the plan stay, unknown ones become what was found.
func TestKeepPlan(t *testing.T) {
	type texts = map[string]string
	unknown, text := types.MapUnknown(types.StringType), resourcekit.StringMap
	for name, test := range map[string]struct {
		planned, found, want types.Map
		warning              string
	}{
		"as planned":      {planned: text(texts{"w": "a"}), found: text(texts{"w": "a"}), want: text(texts{"w": "a"})},
		"nothing planned": {planned: unknown, found: text(texts{"w": "a"}), want: text(texts{"w": "a"})},
		"moved": {
			planned: text(texts{"w": "a", "x": "a"}), found: text(texts{"w": "b", "x": "a"}),
			want: text(texts{"w": "a", "x": "a"}), warning: `placements["w"] is "b", not "a".`,
		},
		"planned in part": {
			planned: types.MapValueMust(types.StringType, map[string]attr.Value{
				"w": types.StringValue("a"), "x": types.StringUnknown(), "y": types.StringUnknown(),
			}),
			found: text(texts{"w": "a", "x": "b"}),
			want: types.MapValueMust(types.StringType, map[string]attr.Value{
				"w": types.StringValue("a"), "x": types.StringValue("b"), "y": types.StringNull(),
			}),
		},
		"gone": {
			planned: text(texts{"w": "a"}), found: text(nil), want: text(texts{"w": "a"}),
			warning: `placements["w"] is "", not "a".`,
		},
		"one more": {
			planned: text(texts{"w": "a"}), found: text(texts{"w": "a", "x": "b"}), want: text(texts{"w": "a"}),
			warning: `placements["x"] is "b", not "".`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := Model{Placements: test.found, Members: text(nil), ClusterSpec: text(nil)}
			var diags diag.Diagnostics
			m.keepPlan(Model{Placements: test.planned, Members: unknown, ClusterSpec: unknown}, &diags)
			if !m.Placements.Equal(test.want) {
				t.Errorf("got %s, want %s", m.Placements, test.want)
			}
			warned := diags.WarningsCount() == 1 && strings.Contains(diags[0].Detail(), test.warning)
			if test.warning == "" && len(diags) > 0 || test.warning != "" && !warned {
				t.Errorf("got %v, want a warning %q", diags, test.warning)
			}
		})
	}
}
