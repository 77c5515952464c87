package provider

import (
	"maps"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Changes from outside to a member show where the attribute is declared, and nowhere else.
func TestFlattenShowsDriftWhereItIsDeclared(t *testing.T) {
	type at struct{ group, role group.TemplateModel }
	declared := func() (group, role domain.Template) {
		group = domain.Template{
			Image: "trainer:1", Command: []string{"/bin/true"}, Env: map[string]string{"SHARED": "1", "BOTH": "1"},
			Container: &domain.Container{
				Secrets: map[string]domain.SecretFile{"token": {Version: "1"}}, ShmSizeMiB: 64,
			},
		}
		return group, domain.Template{Env: map[string]string{"OWN": "1", "BOTH": "2"}}
	}
	for name, test := range map[string]struct {
		live func(s *domain.MemberSpec)
		show func(m at) any
		want any
	}{
		"image of the group": {
			func(s *domain.MemberSpec) { s.Image = "other:2" },
			func(m at) any { return resourcekit.Value(m.group.Image) }, "other:2",
		},
		"variable of the group": {func(s *domain.MemberSpec) { s.Env["SHARED"] = "9" },
			func(m at) any { return m.group.Env }, map[string]string{"SHARED": "9", "BOTH": "1"}},
		"variable of the role": {func(s *domain.MemberSpec) { s.Env["OWN"] = "9" },
			func(m at) any { return m.role.Env }, map[string]string{"OWN": "9", "BOTH": "2"}},
		"variable of both": {func(s *domain.MemberSpec) { s.Env["BOTH"] = "9" },
			func(m at) any { return m.role.Env }, map[string]string{"OWN": "1", "BOTH": "9"}},
		"variable that nobody declares": {func(s *domain.MemberSpec) { s.Env["NEW"] = "9" },
			func(m at) any { return m.role.Env }, map[string]string{"OWN": "1", "BOTH": "2", "NEW": "9"}},
		"variable taken away": {
			func(s *domain.MemberSpec) { delete(s.Env, "OWN") }, func(m at) any { return m.role.Env },
			map[string]string{"BOTH": "2"},
		},
		"version of a secret": {func(s *domain.MemberSpec) {
			s.Container.Secrets = map[string]domain.SecretFile{"token": {Version: "2"}}
		},
			func(m at) any { return m.group.Container.Secrets["token"].Version }, "2"},
		"shared memory": {
			func(s *domain.MemberSpec) { s.Container.ShmSizeMiB = 1 },
			func(m at) any { return resourcekit.Value(m.group.Container.ShmSizeMiB) }, int64(1),
		},
	} {
		found := providertest.ObservedGroup(t, false)
		document := found.Document
		role := document.Spec.Roles["worker"]
		document.Spec.Template, role.Template = declared()
		document.Spec.Roles = map[string]domain.Role{"worker": role}
		found.Decision = reconcile.Current(engine.Traits{}, map[string]domain.Host{"local": {Address: "10.0.0.1"}},
			document)
		live, err := found.Layout.Spec(1)
		if err != nil {
			t.Fatal(err)
		}
		live.Env = maps.Clone(live.Env)
		test.live(&live)
		for i := range found.Observed {
			found.Observed[i].Hash = found.Layout.Hash(i)
		}
		empty := group.Model{Triggers: types.MapNull(types.StringType)}
		before := group.FlattenGroup(found, empty)
		found.Observed[1].Live = &live
		after := group.FlattenGroup(found, before)
		if got := test.show(at{after.TemplateModel, after.Roles["worker"].TemplateModel}); !reflect.DeepEqual(got,
			test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
		if changed := !reflect.DeepEqual(before.TemplateModel,
			after.TemplateModel) != !reflect.DeepEqual(before.Roles, after.Roles); !changed {
			t.Errorf("%s: it has to show at the group or at the role", name)
		}
	}
}

// Secret values are in no plan and no state, and are unset in a plan without changes.
func TestSecretValuesAreInNoPlan(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	config := tf.group("g", role{replicas: 1, port: 10000})
	container := func(v any) tftypes.Value {
		typ, ok := config["container"].Type().(tftypes.Object)
		if !ok {
			t.Fatal("the container is no object")
		}
		attributes := map[string]tftypes.Value{}
		for name, attribute := range typ.AttributeTypes {
			attributes[name] = tftypes.NewValue(attribute, nil)
		}
		secrets, ok := typ.AttributeTypes["secrets"].(tftypes.Map)
		if !ok {
			t.Fatal("the secrets are no map")
		}
		secret := tftypes.NewValue(secrets.ElementType, map[string]tftypes.Value{
			"value": tftypes.NewValue(tftypes.String, v), "version": providertest.Text("1"),
			"target": tftypes.NewValue(tftypes.String, nil), "mode": providertest.Text("0440"),
		})
		attributes["secrets"] = tftypes.NewValue(secrets, map[string]tftypes.Value{"token": secret})
		return tftypes.NewValue(typ, attributes)
	}
	for name, v := range map[string]any{"known": "hunter2", "not known yet": tftypes.UnknownValue} {
		config["container"] = container(v)
		planned, diagnostics := tf.plan("trainyard_group", config, nil)
		fatalOn(t, nil, diagnostics)
		if want := container(nil); !planned["container"].Equal(want) {
			t.Errorf("%s: planned %s, want %s", name, planned["container"], want)
		}
		if !planned["members"].IsFullyKnown() {
			t.Errorf("%s: the value of a secret decides nothing about members, and these are planned: %s", name,
				planned["members"])
		}
	}
	config["container"] = container("")
	resp, err := tf.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: "trainyard_group", Config: tf.object("trainyard_group", config),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Diagnostics) != 1 {
		t.Errorf("an empty secret: got %v, want one error", resp.Diagnostics)
	}
}
