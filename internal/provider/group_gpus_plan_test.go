package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// gpuGroup returns the configuration of a group of this many workers, each with a GPU of the pool p.
func (tf terraform) gpuGroup(name string, workers int64) map[string]tftypes.Value {
	tf.t.Helper()
	return tf.groupOf(name, group.RoleModel{
		Replicas: &workers, Port: new(int64(9000)), TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}},
		GPUs: &group.RoleGPUsModel{Pool: "p"},
	})
}

// A plan shows the GPUs of members if there is nothing left to choose.
func TestPlanOfGroupWithGPUs(t *testing.T) {
	place := func(host string, n int) string { return host + " " + uuid(host, n) }
	slots := map[string]tftypes.Value{
		"sharing": providertest.Text("slots"), "memory_mib_per_slot": tftypes.NewValue(tftypes.Number, 1199),
	}
	with := func(devices, more map[string]tftypes.Value) map[string]tftypes.Value {
		all := maps.Clone(devices)
		maps.Copy(all, more)
		return all
	}
	for name, test := range map[string]struct {
		pool    map[string]tftypes.Value
		workers int64
		want    []string // the places of the workers; none if unknown
		refused string
	}{
		"all devices of a pool": {
			named(t, map[string][]int{"a": {5, 4}}), 2, []string{place("a", 5), place("a", 4)}, "",
		},
		"some devices of a pool":        {named(t, map[string][]int{"a": {5, 4}}), 1, nil, ""},
		"all devices, of several hosts": {named(t, map[string][]int{"a": {5}, "b": {0}}), 2, nil, ""},
		"slots of the only device": {
			with(named(t, map[string][]int{"b": {0}}), slots), 2, []string{place("b", 0), place("b", 0)}, "",
		},
		"slots of several devices":       {with(named(t, map[string][]int{"a": {5, 4}}), slots), 2, nil, ""},
		"more than the pool has devices": {named(t, map[string][]int{"a": {5, 4}}), 3, nil, `only 2 of them fit`},
		"more than the device has slots": {
			with(named(t, map[string][]int{"b": {0}}), slots), 38, nil, `only 37 of them fit`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tf := newTerraform(t, gpuStub())
			tf.planPool(tf.gpuPool("p", test.pool), nil)
			planned, diagnostics := tf.plan("trainyard_group", tf.gpuGroup("job", test.workers), nil)
			if test.refused != "" {
				if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, test.refused) {
					t.Errorf("got %q, want an error that says %q", details(diagnostics), test.refused)
				}
				return
			}
			fatalOn(t, nil, diagnostics)
			if test.want == nil {
				if planned["placements"].IsKnown() {
					t.Errorf("got %s", planned["placements"])
				}
				return
			}
			want := map[string]attr.Value{}
			for i, place := range test.want {
				want[domain.MemberName("job", "worker", i)] = types.StringValue(place)
			}
			if want := providertest.Raw(t,
				types.MapValueMust(types.StringType, want)); !planned["placements"].Equal(want) {
				t.Errorf("got %s, want %s", planned["placements"], want)
			}
		})
	}
}

// The members of a group are unknown while the devices of its pool are. A pool that is being destroyed can't be used.
func TestPlanOfGroupWithOpenGPUPool(t *testing.T) {
	stub := gpuStub()
	tf := newTerraform(t, stub)
	config := tf.gpuPool("p", named(t, map[string][]int{"a": {4}}))
	state := tf.applyPool(config)
	config["devices"] = tftypes.NewValue(config["devices"].Type(), tftypes.UnknownValue)
	tf.planPool(config, state)
	planned, diagnostics := tf.plan("trainyard_group", tf.gpuGroup("job", 5), nil)
	fatalOn(t, nil, diagnostics)
	if planned["members"].IsKnown() {
		t.Errorf("got members %s", planned["members"])
	}
	_, diagnostics = tf.plan(theGPUPool, nil, state)
	fatalOn(t, nil, diagnostics)
	if _, diagnostics = tf.plan("trainyard_group", tf.gpuGroup("job", 1), nil); len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, `"p"`) {
		t.Errorf("a pool that goes: got %q", details(diagnostics))
	}
}

// Members with GPUs have to be where the plan shows them.
func TestPlannedDevices(t *testing.T) {
	placements := types.MapValueMust(types.StringType, map[string]attr.Value{
		"job-ps-0": types.StringValue("a"), "job-worker-0": types.StringValue("a GPU-1,GPU-2"),
		"job-worker-1": types.StringUnknown(),
	})
	got := group.PlannedDevices(placements)
	if want := map[string]domain.Assignment{"job-worker-0": {Host: "a", GPUs: "GPU-1,GPU-2"}}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := group.PlannedDevices(types.MapUnknown(types.StringType)); len(got) > 0 {
		t.Errorf("got %v of what is not known", got)
	}
}
