package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

func TestPlanDefersWhatDependsOnUnknownHosts(t *testing.T) {
	typeOf := func(name string) tftypes.Type {
		return cluster.Schema(t.Context(), nil).Attributes[name].GetType().TerraformType(t.Context())
	}
	agent, ok := typeOf("agent").(tftypes.Object)
	if !ok {
		t.Fatal("agent is no object")
	}
	unbuilt := map[string]tftypes.Value{}
	for name, typ := range agent.AttributeTypes {
		unbuilt[name] = tftypes.NewValue(typ, nil)
	}
	unbuilt["image"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	hosts := newTerraform(t, &providertest.Stub{}).swarm(nil)["hosts"]
	for name, set := range map[string]map[string]tftypes.Value{
		"hosts": {"hosts": tftypes.NewValue(typeOf("hosts"), tftypes.UnknownValue)},
		"image of the agents, beside new hosts": {
			"endpoint": providertest.Text("ssh://gpu1"), "hosts": hosts, "agent": tftypes.NewValue(agent, unbuilt),
		},
	} {
		tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
		config := tf.config("trainyard_cluster", set)
		config["name"] = providertest.Text("lab")
		planned, diagnostics := tf.plan("trainyard_cluster", config, nil)
		fatalOn(t, nil, diagnostics)
		if !config["hosts"].IsKnown() && planned["hosts"].IsKnown() {
			t.Errorf("%s: got hosts %s", name, planned["hosts"])
		}
		// The stored cluster has 4 CPUs; its planned capacity is unknown.
		group, diagnostics := tf.plan("trainyard_group", tf.group("g", role{replicas: 1, port: 9000, cpus: 64}), nil)
		if len(diagnostics) > 0 || group["members"].IsKnown() {
			t.Errorf("%s: got members %s (%v)", name, group["members"], details(diagnostics))
		}
	}
}

func TestPlanDefersUnknownConfiguration(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	config := tf.group("g", role{replicas: 1, port: 9000})
	config["env"] = tftypes.NewValue(tftypes.Map{ElementType: tftypes.String},
		map[string]tftypes.Value{"A": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})
	planned, diagnostics := tf.plan("trainyard_group", config, nil)
	fatalOn(t, nil, diagnostics)
	if planned["members"].IsKnown() {
		t.Errorf("got members %s", planned["members"])
	}

	// Triggers don't affect placement.
	config = tf.group("g", role{replicas: 1, port: 9000})
	config["triggers"] = tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, tftypes.UnknownValue)
	planned, diagnostics = tf.plan("trainyard_group", config, nil)
	fatalOn(t, nil, diagnostics)
	if !planned["members"].IsFullyKnown() {
		t.Errorf("got members %s", planned["members"])
	}
}

// TestPlanChecksRoomOfUnknownImages: a plan checks room for members whose image has yet to be
// built, and counts it as taken.
func TestPlanChecksRoomOfUnknownImages(t *testing.T) {
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	for name, test := range map[string]struct {
		first, second role
		says          string
	}{
		"there is room": {
			first: role{replicas: 1, port: 9000, cpus: 1}, second: role{replicas: 1, port: 9100, cpus: 1},
		},
		"more than a host has": {first: role{replicas: 1, port: 9000, cpus: 5}, says: "requests 5 CPUs"},
		"a port that is taken": {first: role{replicas: 2, port: 7999}, says: "8000"},
		"nothing left for another": {
			first: role{replicas: 1, port: 9000, cpus: 3}, second: role{replicas: 1, port: 9100, cpus: 2},
			says: "1 of 4 CPUs free",
		},
		"the port of another": {
			first: role{replicas: 1, port: 9000}, second: role{replicas: 1, port: 9000}, says: `group "first"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tf := newTerraform(t, providertest.Set(&providertest.Stub{Busy: map[string][]int{"127.0.0.1": {8000}}},
				providertest.LabOf("local")))
			var messages []string
			for i, r := range []role{test.first, test.second} {
				if r.replicas == 0 {
					continue
				}
				config := tf.group([]string{"first", "second"}[i], r)
				config["image"] = unknown
				planned, diagnostics := tf.plan("trainyard_group", config, nil)
				messages = append(messages, details(diagnostics)...)
				if planned["members"].IsKnown() {
					t.Errorf("got members %s", planned["members"])
				}
			}
			if got := strings.Join(messages, "\n"); (test.says == "") != (got == "") ||
				!strings.Contains(got, test.says) {
				t.Errorf("got %q, want %q", got, test.says)
			}
		})
	}
}

// Placement is left open as long as anything that it depends on is unknown.
func TestPlanDefersUnknownPlaces(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	config := tf.group("g", role{replicas: 2, port: 9000, cpus: 5})
	for _, at := range []string{
		"", `.AttributeName("replicas")`, `.AttributeName("port")`, `.AttributeName("resources")`,
		`.AttributeName("resources").AttributeName("cpus")`,
	} {
		open := maps.Clone(config)
		at = `ElementKeyString("worker")` + at
		open["roles"] = without(t, config["roles"], at)
		planned, diagnostics := tf.plan("trainyard_group", open, nil)
		fatalOn(t, nil, diagnostics)
		if planned["members"].IsKnown() {
			t.Errorf("without %s: members %s", at, planned["members"])
		}
	}
}
