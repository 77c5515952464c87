package provider

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// withoutTokens is an engine that issues no join tokens.
type withoutTokens struct{ providertest.Stubbed }

func TestJoinToken(t *testing.T) {
	joinable := providertest.Set(&providertest.Stub{
		Token: engine.JoinToken{Token: "SWMTKN", Managers: []string{"10.0.0.1:2377"}},
	}, providertest.LabOf("local"))
	for name, test := range map[string]struct {
		engine  providertest.Stubbed
		role    any
		want    map[string]string
		failure string
	}{
		"of a worker": {joinable, nil, map[string]string{"role": "worker", "token": "SWMTKN-worker"}, ""},
		"of a manager": {
			joinable, "manager", map[string]string{"role": "manager", "token": "SWMTKN-manager"}, "",
		},
		"of no cluster": {&providertest.Stub{}, nil, nil, `no join token of cluster "lab"`},
		"of another engine": {
			withoutTokens{providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))}, nil, nil,
			`"process" has no join tokens`,
		},
		"of one that is off": {
			&providertest.Stub{Fails: providertest.Failures{"Get cluster": errors.New("unreachable")}}, nil, nil,
			"unreachable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := NewServer("test", engine.Registry{"process": providertest.Driver(test.engine)})
			schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
			fatalOn(t, err, schemas.Diagnostics)
			configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
				Config: encode(t, schemas.Provider,
					tftypes.NewValue(schemas.Provider.ValueType(), nullsOf(schemas.Provider))),
			})
			fatalOn(t, err, configured.Diagnostics)

			s := schemas.EphemeralResourceSchemas["trainyard_join_token"]
			config := nullsOf(s)
			cluster, ok := config["cluster"].Type().(tftypes.Object)
			if !ok {
				t.Fatal("the cluster is no object")
			}
			config["cluster"] = tftypes.NewValue(cluster, map[string]tftypes.Value{
				"name": providertest.Text("lab"), "engine": tftypes.NewValue(tftypes.String, nil),
				"endpoint": tftypes.NewValue(tftypes.String, nil), "id": providertest.Text("lab"),
			})
			config["role"] = tftypes.NewValue(tftypes.String, test.role)
			resp, err := server.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{
				TypeName: "trainyard_join_token", Config: encode(t, s, tftypes.NewValue(s.ValueType(), config)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.failure != "" {
				if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, test.failure) {
					t.Errorf("got %v, want an error that says %s", resp.Diagnostics, test.failure)
				}
				return
			}
			fatalOn(t, nil, resp.Diagnostics)
			result, err := resp.Result.Unmarshal(s.ValueType())
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]tftypes.Value
			if err := result.As(&got); err != nil {
				t.Fatal(err)
			}
			for attribute, want := range test.want {
				if !got[attribute].Equal(providertest.Text(want)) {
					t.Errorf("%s: got %s, want %s", attribute, got[attribute], want)
				}
			}
			addresses := tftypes.NewValue(tftypes.List{ElementType: tftypes.String},
				[]tftypes.Value{providertest.Text("10.0.0.1:2377")})
			if !got["addresses"].Equal(addresses) {
				t.Errorf("got addresses %s", got["addresses"])
			}
		})
	}
}
