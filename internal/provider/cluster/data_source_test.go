package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// The data source has the resource's attributes, with the same types, so that modules accept either.
func TestDataSourceAsResource(t *testing.T) {
	var data datasource.SchemaResponse
	NewDataSource(nil).Schema(t.Context(), datasource.SchemaRequest{}, &data)
	for name, attribute := range Schema(t.Context(), nil).Attributes {
		if name == "timeouts" {
			continue
		}
		if found := data.Schema.Attributes[name]; found == nil || !found.GetType().Equal(attribute.GetType()) {
			t.Errorf("%s is %v, and %v in the resource", name, found, attribute.GetType())
		}
	}
}

func TestDataSourceAgent(t *testing.T) {
	for name, test := range map[string]struct {
		stored domain.Agent
		want   agentModel
	}{
		"the defaults": {domain.Agent{}, agentModel{Enabled: new(true)}},
		"a port":       {domain.Agent{MetricsPort: 9465}, agentModel{Enabled: new(true), MetricsPort: new(int64(9465))}},
		"an image":     {domain.Agent{Image: "agent:1"}, agentModel{Enabled: new(true), Image: new("agent:1")}},
		"none":         {domain.Agent{Disabled: true}, agentModel{Enabled: new(false)}},
	} {
		t.Run(name, func(t *testing.T) {
			lab := providertest.LabOf("local")
			lab.Spec.Agent = test.stored
			d := &clusterDataSource{resourcekit.NewDataSource("cluster", nil)}
			d.Session = resourcekit.NewSession(providertest.Set(&providertest.Stub{}, lab).Registry(),
				engine.Settings{})
			var data datasource.SchemaResponse
			d.Schema(t.Context(), datasource.SchemaRequest{}, &data)
			config := tfsdk.State{
				Schema: data.Schema, Raw: tftypes.NewValue(data.Schema.Type().TerraformType(t.Context()), nil),
			}
			diags := config.Set(t.Context(), dataModel{Name: types.StringValue("lab")})
			request := datasource.ReadRequest{Config: tfsdk.Config{Schema: data.Schema, Raw: config.Raw}}
			resp := datasource.ReadResponse{State: tfsdk.State{Schema: data.Schema}}
			d.Read(t.Context(), request, &resp)
			var model dataModel
			if diags.Append(resp.Diagnostics...); !diags.HasError() {
				diags.Append(resp.State.Get(t.Context(), &model)...)
			}
			if diags.HasError() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(&test.want, model.Agent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
