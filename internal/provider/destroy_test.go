package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// All errors that prevent a plan say how to destroy what there is, for every resource and data source,
// and only once per response.
func TestPlanErrorsSayHowToDestroy(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	check := func(name string, diagnostics []*tfprotov6.Diagnostic, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, d := range diagnostics {
			text.WriteString(d.Detail + "\n")
		}
		if strings.Count(text.String(), resourcekit.DestroyRegardless) != 1 {
			t.Errorf("%s says:\n%s", name, &text)
		}
	}
	// Every value in these is wrong, starting with the engine.
	resources, dataSources := schemasOf(t, New("test", (&providertest.Stub{}).Registry())())
	for name, of := range resources {
		none, err := tfprotov6.NewDynamicValue(of.TerraformType(t.Context()),
			tftypes.NewValue(of.TerraformType(t.Context()), nil))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tf.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: name, PriorState: &none, Config: filledValue(t, of), ProposedNewState: filledValue(t, of),
		})
		check(name, resp.Diagnostics, err)
	}
	for name, of := range dataSources {
		resp, err := tf.server.ReadDataSource(t.Context(),
			&tfprotov6.ReadDataSourceRequest{TypeName: name, Config: filledValue(t, of)})
		check("data."+name, resp.Diagnostics, err)
	}
}
