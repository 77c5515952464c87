package group

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// tableOf draws a nil, empty or filled map.
func tableOf[V any](draw func(t *rapid.T) V) *rapid.Generator[map[string]V] {
	return rapid.OneOf(rapid.Just(map[string]V(nil)),
		rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), rapid.Custom(draw), 0, 2))
}

func drawMode(t *rapid.T) types.String {
	return resourcekit.TextOrNull(rapid.SampledFrom([]string{"", "0444", "444", "0777", "001"}).Draw(t, "mode"))
}

func drawContainer(t *rapid.T) ContainerModel {
	number := providertest.Optional(rapid.Int64Range(0, 9))
	return ContainerModel{
		PullPolicy: providertest.Optional(rapid.SampledFrom([]string{"", "always"})).Draw(t, "pull_policy"),
		Init:       providertest.Optional(rapid.Bool()).Draw(t, "init"),
		User:       providertest.Optional(rapid.SampledFrom([]string{"", "1000:100"})).Draw(t, "user"),
		StopSignal: providertest.Optional(rapid.SampledFrom([]string{"", "SIGINT"})).Draw(t, "stop_signal"),
		ShmSizeMiB: number.Draw(t, "shm"),
		Ulimits: tableOf(func(t *rapid.T) UlimitModel {
			return UlimitModel{Soft: rapid.Int64().Draw(t, "soft"), Hard: rapid.Int64().Draw(t, "hard")}
		}).Draw(t, "ulimits"),
		HealthCheck: providertest.Optional(rapid.Custom(func(t *rapid.T) HealthCheckModel {
			return HealthCheckModel{
				Command:  rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "command"),
				Interval: providertest.DrawDuration(t), Timeout: providertest.DrawDuration(t),
				StartPeriod: providertest.DrawDuration(t),
				Retries:     number.Draw(t, "retries"),
			}
		})).Draw(t, "health_check"),
		Logging: providertest.Optional(rapid.Custom(func(t *rapid.T) LoggingModel {
			return LoggingModel{
				Driver: rapid.String().Draw(t, "driver"), Options: providertest.NilableMap().Draw(t, "options"),
			}
		})).Draw(t, "logging"),
		Ports: tableOf(func(t *rapid.T) PortModel {
			return PortModel{Target: rapid.Int64Range(1, 9).Draw(t, "target"),
				Published: rapid.Int64Range(1, 9).Draw(t, "published"),

				Protocol: providertest.Optional(rapid.SampledFrom([]string{"", "udp"})).Draw(t, "protocol")}
		}).Draw(t, "ports"),
		Configs: tableOf(func(t *rapid.T) ConfigFileModel {
			target := providertest.Optional(rapid.SampledFrom([]string{"", "/a"})).Draw(t, "target")
			return ConfigFileModel{Content: rapid.String().Draw(t, "content"), Target: target, Mode: drawMode(t)}
		}).Draw(t, "configs"),
		Secrets: tableOf(func(t *rapid.T) SecretFileModel {
			return SecretFileModel{
				Version: rapid.String().Draw(t, "version"),
				Target:  providertest.Optional(rapid.SampledFrom([]string{"", "/a"})).Draw(t, "target"),
				Mode:    drawMode(t),
			}
		}).Draw(t, "secrets"),
	}
}

func TestSecretsOfRoles(t *testing.T) {
	container := func(secrets map[string]string) *ContainerModel {
		c := &ContainerModel{Secrets: map[string]SecretFileModel{}}
		for name, v := range secrets {
			c.Secrets[name] = SecretFileModel{Value: types.StringValue(v), Version: "1"}
		}
		return c
	}
	m := Model{TemplateModel: TemplateModel{Container: container(map[string]string{"a": "of the group"})},
		Roles: map[string]RoleModel{
			"ps": {},
			"worker": {
				TemplateModel: TemplateModel{Container: container(map[string]string{"a": "its own", "b": "more"})},
			},
			"chief": {TemplateModel: TemplateModel{Container: &ContainerModel{}}},
		}}
	want := domain.SecretValues{
		"ps": {"a": []byte("of the group")}, "worker": {"a": []byte("its own"), "b": []byte("more")},
	}
	if got := m.secrets(); !reflect.DeepEqual(map[string]map[string][]byte(got), map[string]map[string][]byte(want)) {
		t.Errorf("got %q, want %q", map[string]map[string][]byte(got), map[string]map[string][]byte(want))
	}
	var diags diag.Diagnostics
	if got := m.expand(&diags).Roles["worker"].Container.Secrets["a"]; got != (domain.SecretFile{Version: "1"}) {
		t.Errorf("the specification has %+v of a secret", got)
	}
}

func TestModes(t *testing.T) {
	for text, valid := range map[string]bool{
		"0444": true, "444": true, "0777": true, "001": true,
		"": false, "0": false, "44": false, "0888": false, "1777": false, "00444": false, "0o444": false, "rw-": false,
		"0000": false, "000": false,
	} {
		var resp validator.StringResponse
		resourcekit.IsMode().ValidateString(t.Context(), validator.StringRequest{ConfigValue: types.StringValue(text)},
			&resp)
		if resp.Diagnostics.HasError() == valid {
			t.Errorf("%q: got %v", text, resp.Diagnostics)
		}
	}
}
