package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

func TestImportByID(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	for _, test := range []struct{ resource, id, failure string }{
		{"trainyard_cluster", "lab", ""},
		{"trainyard_group", "lab/g", ""},
		{"trainyard_group", "lab", "<cluster>/<group>"},
		{"trainyard_group", "lab/", "<cluster>/<group>"},
		{"trainyard_group", "lab/g/x", "<cluster>/<group>"},
		{"trainyard_group", "ssh://gpu1/lab", "<cluster>/<group>"},
		{"trainyard_cluster", "ssh://gpu1", "the ID of a cluster"},
	} {
		resp, err := tf.server.ImportResourceState(t.Context(),
			&tfprotov6.ImportResourceStateRequest{TypeName: test.resource, ID: test.id})
		if err != nil {
			t.Fatal(err)
		}
		if test.failure != "" {
			if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, test.failure) {
				t.Errorf("%s: got %v, want an error that says %s", test.id, resp.Diagnostics, test.failure)
			}
			continue
		}
		fatalOn(t, nil, resp.Diagnostics)
		state, err := resp.ImportedResources[0].State.Unmarshal(tf.schemas[test.resource].ValueType())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(state.String(), `"process"`) {
			t.Errorf("%s: the state does not have the engine that was found: %s", test.id, state)
		}
	}
}

func TestImportByIdentity(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"cluster": tftypes.String, "name": tftypes.String}}
	identity, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ,
		map[string]tftypes.Value{"cluster": providertest.Text("lab"), "name": providertest.Text("g")}))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tf.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "trainyard_group", Identity: &tfprotov6.ResourceIdentityData{IdentityData: &identity},
	})
	fatalOn(t, err, resp.Diagnostics)
	state, err := resp.ImportedResources[0].State.Unmarshal(tf.schemas["trainyard_group"].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	var attributes map[string]tftypes.Value
	if err := state.As(&attributes); err != nil {
		t.Fatal(err)
	}
	if !attributes["name"].Equal(providertest.Text("g")) {
		t.Errorf("got name %s", attributes["name"])
	}
}
