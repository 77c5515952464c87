package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Memory that another kernel reported for this machine is no change, and more memory is.
func TestPlanOfClusterKeepsMemory(t *testing.T) {
	for stored, changes := range map[int64]bool{8000: false, 8010: false, 4000: true} {
		tf := newTerraform(t, &providertest.Stub{})
		config := tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")})
		prior, diagnostics := tf.plan("trainyard_cluster", config, nil)
		fatalOn(t, nil, diagnostics)
		hosts := cluster.Schema(t.Context(), nil).Attributes["hosts"].GetType()
		value, diags := types.MapValueFrom(t.Context(), elementOf(t, hosts), resourcekit.Flatten(domain.Cluster{
			Hosts: map[string]domain.Host{"local": providertest.Host("127.0.0.1", 4, stored, nil)},
		}, cluster.Model{}).Hosts)
		if diags.HasError() {
			t.Fatal(diags)
		}
		prior["id"], prior["hosts"] = providertest.Text("lab"), providertest.Raw(t, value)
		planned, diagnostics := tf.plan("trainyard_cluster", config, prior)
		fatalOn(t, nil, diagnostics)
		if got := !planned["hosts"].Equal(prior["hosts"]); got != changes {
			t.Errorf("%d MiB stored: a change: %t, want %t", stored, got, changes)
		}
	}
}

func elementOf(t *testing.T, typ attr.Type) attr.Type {
	t.Helper()
	m, ok := typ.(types.MapType)
	if !ok {
		t.Fatalf("%s is no map", typ)
	}
	return m.ElemType
}
