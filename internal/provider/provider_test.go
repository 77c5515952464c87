package provider

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// configured returns the response of a provider to a configuration.
func configured(t *testing.T, set map[string]tftypes.Value) provider.ConfigureResponse {
	t.Helper()
	p := New("test", engine.Registry{})()
	var schema provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &schema)
	typ, ok := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("the configuration is no object")
	}
	attributes := map[string]tftypes.Value{}
	for name, attribute := range typ.AttributeTypes {
		attributes[name] = tftypes.NewValue(attribute, nil)
		if v, found := set[name]; found {
			attributes[name] = v
		}
	}
	var resp provider.ConfigureResponse
	p.Configure(t.Context(),
		provider.ConfigureRequest{Config: tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(typ, attributes)}},
		&resp)
	return resp
}

// blockValue returns a block of the provider's configuration as Terraform passes it.
func blockValue(t *testing.T, block schema.Attribute, model any) tftypes.Value {
	t.Helper()
	typ, ok := block.GetType().(types.ObjectType)
	if !ok {
		t.Fatal("the block is no object")
	}
	v, diags := types.ObjectValueFrom(t.Context(), typ.AttrTypes, model)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return providertest.Raw(t, v)
}

func TestStateDir(t *testing.T) {
	for name, test := range map[string]struct {
		config  any
		want    string
		refused bool
	}{
		"configured":             {"/configured", "/configured", false},
		"the engine's default":   {nil, "", false},
		"empty as if left out":   {"", "", false},
		"not known at this time": {tftypes.UnknownValue, "", true},
	} {
		resp := configured(t, map[string]tftypes.Value{"state_dir": tftypes.NewValue(tftypes.String, test.config)})
		if resp.Diagnostics.HasError() != test.refused {
			t.Errorf("%s: got %v", name, resp.Diagnostics)
		}
		if test.refused {
			continue
		}
		if s := resourcekit.SessionOf(resp.ResourceData, &resp.Diagnostics); s == nil ||
			s.Settings.StateDir != test.want {
			t.Errorf("%s: got %+v, want %q", name, s, test.want)
		}
	}
}

func TestDockerSettings(t *testing.T) {
	full := &dockerModel{
		TLS: &tlsModel{CA: new("CA"), Cert: new("CERT"), Key: new("TLSKEY"), CertPath: new("/certs")},
		Registries: map[string]registryModel{
			"docker.io": {Username: new("u"), Password: new("p")}, "other": {Token: new("t")},
		},
		ControllerImage: new("trainyard:1"),
	}
	want := engine.DockerSettings{
		TLS: engine.TLSCredentials{CA: "CA", Cert: "CERT", Key: "TLSKEY", CertPath: "/certs"},
		Registries: map[string]engine.RegistryCredentials{
			"docker.io": {Username: "u", Password: "p"}, "other": {Token: "t"},
		},
		ControllerImage: "trainyard:1",
	}
	for name, test := range map[string]struct {
		model *dockerModel
		want  engine.DockerSettings
	}{
		"all of it": {full, want},
		"nothing":   {&dockerModel{}, engine.DockerSettings{}},
	} {
		resp := configured(t, map[string]tftypes.Value{"docker": blockValue(t, dockerAttribute(), test.model)})
		if resp.Diagnostics.HasError() {
			t.Fatal(resp.Diagnostics)
		}
		for _, data := range []any{resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData} {
			if got := resourcekit.SessionOf(data,
				&resp.Diagnostics).Settings.Docker; !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: the settings are other than they were configured", name)
			}
		}
	}
	if got := (*dockerModel)(nil).expand(); !reflect.DeepEqual(got, engine.DockerSettings{}) {
		t.Errorf("without a docker block: got %+v", got)
	}
}

func TestSSHSettings(t *testing.T) {
	full := &sshModel{
		User: new("ops"), PrivateKey: new("KEY"), IdentityFiles: []string{"~/a", "~/b"}, Passphrase: new("PASS"),
		UseAgent:        new(true),
		KnownHostsFiles: []string{"/etc/known"}, KnownHosts: new("gpu1 ssh-ed25519 AAAA"),
		JumpHost: new("ops@jump:2222"),
	}
	want := engine.SSHCredentials{
		User: "ops", PrivateKey: "KEY", IdentityFiles: []string{"~/a", "~/b"}, Passphrase: "PASS", Agent: true,
		KnownHosts: []string{"/etc/known"}, KnownHostsText: "gpu1 ssh-ed25519 AAAA", JumpHost: "ops@jump:2222",
	}
	for name, test := range map[string]struct {
		model *sshModel
		want  engine.SSHCredentials
	}{
		"all of it": {full, want},
		"nothing":   {&sshModel{}, engine.SSHCredentials{}},
	} {
		resp := configured(t, map[string]tftypes.Value{"ssh": blockValue(t, sshAttribute(), test.model)})
		if resp.Diagnostics.HasError() {
			t.Fatal(resp.Diagnostics)
		}
		if got := resourcekit.SessionOf(resp.ResourceData,
			&resp.Diagnostics).Settings.SSH; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: the settings are other than they were configured", name)
		}
	}
	if got := (*sshModel)(nil).expand(); !reflect.DeepEqual(got, engine.SSHCredentials{}) {
		t.Errorf("without an ssh block: got %+v", got)
	}
}

func TestUnknownCredentialsAreRefused(t *testing.T) {
	typ, ok := dockerAttribute().GetType().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("docker is no object")
	}
	attributes := map[string]tftypes.Value{}
	for name, attribute := range typ.AttributeTypes {
		attributes[name] = tftypes.NewValue(attribute, nil)
	}
	attributes["tls"] = tftypes.NewValue(typ.AttributeTypes["tls"], tftypes.UnknownValue)
	for name, v := range map[string]tftypes.Value{
		"the block": tftypes.NewValue(typ, tftypes.UnknownValue), "a part of it": tftypes.NewValue(typ, attributes),
	} {
		resp := configured(t, map[string]tftypes.Value{"docker": v})
		if resp.Diagnostics.ErrorsCount() != 1 || !strings.Contains(resp.Diagnostics[0].Detail(), "-target") {
			t.Errorf("%s: got %v", name, resp.Diagnostics)
		}
	}
}

func TestValidateSettings(t *testing.T) {
	docker := func(m dockerModel) map[string]tftypes.Value {
		return map[string]tftypes.Value{"docker": blockValue(t, dockerAttribute(), &m)}
	}
	ssh := func(m sshModel) map[string]tftypes.Value {
		return map[string]tftypes.Value{"ssh": blockValue(t, sshAttribute(), &m)}
	}
	for name, test := range map[string]struct {
		blocks map[string]tftypes.Value
		valid  bool
	}{
		"a key": {ssh(sshModel{PrivateKey: new("KEY")}), true},
		"several keys": {
			ssh(sshModel{PrivateKey: new("KEY"), IdentityFiles: []string{"~/a", "~/b"}}), true,
		},
		"an empty key":          {ssh(sshModel{PrivateKey: new("")}), false},
		"no key of a list":      {ssh(sshModel{IdentityFiles: []string{}}), false},
		"a file without a name": {ssh(sshModel{IdentityFiles: []string{""}}), false},
		"a user with a password": {
			docker(dockerModel{Registries: map[string]registryModel{"a": {Username: new("u"), Password: new("p")}}}),
			true,
		},
		"a token": {
			docker(dockerModel{Registries: map[string]registryModel{"a": {Token: new("t")}}}), true,
		},
		"a user alone": {
			docker(dockerModel{Registries: map[string]registryModel{"a": {Username: new("u")}}}), false,
		},
		"a password alone": {
			docker(dockerModel{Registries: map[string]registryModel{"a": {Password: new("p")}}}), false,
		},
		"a token and a password": {docker(dockerModel{
			Registries: map[string]registryModel{"a": {Username: new("u"), Password: new("p"), Token: new("t")}},
		}), false},
		"no credentials":              {docker(dockerModel{Registries: map[string]registryModel{"a": {}}}), false},
		"a certificate with its key":  {docker(dockerModel{TLS: &tlsModel{Cert: new("CERT"), Key: new("KEY")}}), true},
		"a certificate without a key": {docker(dockerModel{TLS: &tlsModel{Cert: new("CERT")}}), false},
		"a key without a certificate": {docker(dockerModel{TLS: &tlsModel{Key: new("KEY")}}), false},
		"texts and a folder": {
			docker(dockerModel{TLS: &tlsModel{CA: new("CA"), CertPath: new("/certs")}}), false,
		},
		"a folder": {docker(dockerModel{TLS: &tlsModel{CertPath: new("/certs")}}), true},
	} {
		server := NewServer("test", engine.Registry{})
		schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		fatalOn(t, err, schemas.Diagnostics)
		config := nullsOf(schemas.Provider)
		maps.Copy(config, test.blocks)
		resp, err := server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{
			Config: encode(t, schemas.Provider, tftypes.NewValue(schemas.Provider.ValueType(), config)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if valid := len(resp.Diagnostics) == 0; valid != test.valid {
			t.Errorf("%s: got %v", name, resp.Diagnostics)
		}
	}
}
