package provider

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// A group that is replaced by one of another name leaves its ports to it.
func TestPlanOfReplacementReusesPorts(t *testing.T) {
	old := providertest.ObservedGroup(t, false)
	stub := providertest.Set(&providertest.Stub{Busy: map[string][]int{"127.0.0.1": {9000, 9001}}},
		providertest.LabOf("local"))
	providertest.Set(stub, old.Document)
	tf := newTerraform(t, stub)
	config := tf.group("other", role{replicas: 2, port: 9000})
	if _, diagnostics := tf.plan("trainyard_group", config, nil); len(diagnostics) == 0 {
		t.Fatal("the ports of a group that stays were not refused")
	}
	prior := maps.Clone(config)
	prior["name"], prior["id"] = providertest.Text("g"), providertest.Text("lab/g")
	_, diagnostics := tf.plan("trainyard_group", config, prior)
	fatalOn(t, nil, diagnostics)
	planned, diagnostics := tf.plan("trainyard_group", config, nil)
	fatalOn(t, nil, diagnostics)
	if got := providertest.TextsOf(t, planned["members"]); got["other-worker-0"] != "127.0.0.1:9000" {
		t.Errorf("got members %v", got)
	}

	// So does one whose replacement runs an image that has yet to be built.
	tf = newTerraform(t, stub)
	config["image"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	if _, diagnostics := tf.plan("trainyard_group", config, nil); len(diagnostics) == 0 {
		t.Fatal("an unknown image: the ports of a group that stays were not refused")
	}
	_, diagnostics = tf.plan("trainyard_group", config, prior)
	fatalOn(t, nil, diagnostics)
	_, diagnostics = tf.plan("trainyard_group", config, nil)
	fatalOn(t, nil, diagnostics)
}

func TestPlanOfDestroyFreesPorts(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{Busy: map[string][]int{"127.0.0.1": {9000, 9001}}},
		providertest.LabOf("local"))
	providertest.Set(stub, providertest.ObservedGroup(t, false).Document)
	tf := newTerraform(t, stub)
	prior := tf.group("g", role{replicas: 2, port: 9000})
	_, diagnostics := tf.plan("trainyard_group", nil, prior)
	fatalOn(t, nil, diagnostics)
	_, diagnostics = tf.plan("trainyard_group", tf.group("other", role{replicas: 2, port: 9000}), nil)
	fatalOn(t, nil, diagnostics)
}

// A tainted group is replaced by itself, even if its members share no ports.
func TestPlanOfReplacementWithoutBusyPorts(t *testing.T) {
	tf := newTerraform(t, providertest.Set(providertest.Set(&providertest.Stub{}, providertest.LabOf("local")),
		providertest.ObservedGroup(t, false).Document))
	config := tf.group("g", role{replicas: 2, port: 9000})
	_, diagnostics := tf.plan("trainyard_group", nil, config)
	fatalOn(t, nil, diagnostics)
	planned, diagnostics := tf.plan("trainyard_group", config, nil)
	fatalOn(t, nil, diagnostics)
	if got := providertest.TextsOf(t, planned["members"]); got["g-worker-0"] != "127.0.0.1:9000" {
		t.Errorf("got members %v", got)
	}
}

// A group that is replaced under its own name is planned as new: its present ports are not those that it will get.
func TestPlanOfReplacementUnderTheSameName(t *testing.T) {
	old := providertest.ObservedGroup(t, false).Document
	worker := old.Spec.Roles["worker"]
	worker.Port = nil
	old.Spec.Roles["worker"] = worker
	stub := providertest.Set(providertest.Set(&providertest.Stub{}, providertest.LabOf("local")), old)
	tf := newTerraform(t, stub)
	config := tf.group("g", role{replicas: 2})
	update, diagnostics := tf.plan("trainyard_group", config, tf.readGroup(config))
	fatalOn(t, nil, diagnostics)
	if !update["members"].IsFullyKnown() {
		t.Errorf("members that stay are not known: %s", update["members"])
	}
	planned, diagnostics := tf.plan("trainyard_group", config, nil)
	fatalOn(t, nil, diagnostics)
	if planned["members"].IsKnown() {
		t.Errorf("got members %s", planned["members"])
	}
}
