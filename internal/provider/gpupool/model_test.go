package gpupool

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// drawGPUPool draws the state of a pool, and the document stored for it.
func drawGPUPool(t *rapid.T) (Model, domain.GPUPoolDocument) {
	number := providertest.Optional(rapid.Int64Range(0, 2000))
	m := Model{
		ID: types.StringValue("lab/p"),
		Cluster: resourcekit.ClusterReference{
			Name: types.StringValue("lab"), Engine: types.StringValue("swarm"),
			Endpoint: resourcekit.TextOrNull(rapid.SampledFrom([]string{"", "ssh://gpu1"}).Draw(t, "endpoint")),
		},
		Name:             types.StringValue("p"),
		Sharing:          types.StringValue(rapid.SampledFrom([]string{"exclusive", "slots"}).Draw(t, "sharing")),
		MemoryMiBPerSlot: number.Draw(t, "slot"),
		ReservePercent:   providertest.DrawNumber(t, 99, "reserve"),
		Strategy:         types.StringValue(rapid.SampledFrom([]string{"spread", "pack"}).Draw(t, "strategy")),
		OnForeignProcess: types.StringValue(rapid.SampledFrom([]string{"avoid", "warn", "ignore"}).Draw(t, "foreign")),
		Timeouts:         providertest.NoTimeouts(Schema(t.Context(), nil)),
	}
	devices := rapid.MapOfN(rapid.StringMatching("[a-z]"),
		rapid.SliceOfN(rapid.StringMatching("GPU-[0-9a-f]{8}"), 1, 3), 1, 3).Draw(t, "devices")
	if rapid.Bool().Draw(t, "selected") {
		m.Select = &SelectorModel{
			Model:     providertest.Optional(rapid.SampledFrom([]string{"", "Tesla*"})).Draw(t, "model"),
			MemoryMiB: number.Draw(t, "memory"), MaxPerHost: number.Draw(t, "most"),
			Hosts:  providertest.Nilable(rapid.String()).Draw(t, "hosts"),
			Labels: providertest.NilableMap().Draw(t, "labels"),
		}
	}
	m.Devices = providertest.UUIDLists(devices)
	document := domain.GPUPoolDocument{Spec: m.specified(new(diag.Diagnostics)), Devices: map[string][]domain.Device{}}
	for host, uuids := range devices {
		for _, uuid := range uuids {
			document.Devices[host] = append(document.Devices[host], domain.Device{UUID: uuid, MemoryMiB: 46068})
		}
	}
	if rapid.Bool().Draw(t, "unhealthy") {
		for _, uuids := range devices {
			document.Trouble = map[string]string{uuids[0]: "no longer found"}
		}
	}
	m.Unhealthy = resourcekit.StringMap(document.Unhealthy())
	_, m.Slots, m.DeviceSlots = foundDevices(document)
	return m, document
}

// A stored pool reads back as configured, and after an import it means the same.
func TestGPUPoolRoundTrip(t *testing.T) {
	s := Schema(t.Context(), []string{"process", "swarm"})
	rapid.Check(t, func(t *rapid.T) {
		m, document := drawGPUPool(t)
		text, err := json.Marshal(document)
		var stored domain.GPUPoolDocument
		if err == nil {
			err = json.Unmarshal(text, &stored)
		}
		if err != nil || !stored.Spec.Equal(m.specified(new(diag.Diagnostics))) {
			t.Fatalf("stored as %s (%v), from %+v", text, err, m)
		}
		state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), nil)}
		if diags := state.Set(t.Context(), m); diags.HasError() {
			t.Fatalf("set: %v", diags)
		}
		var kept Model
		if diags := state.Get(t.Context(), &kept); diags.HasError() {
			t.Fatalf("get: %v", diags)
		}
		if diff := cmp.Diff(m, flatten(stored, kept)); diff != "" {
			t.Fatalf("(-configured +read)\n%s", diff)
		}
		imported := flatten(stored, Model{Cluster: m.Cluster, Name: m.Name, Timeouts: m.Timeouts})
		if !imported.specified(new(diag.Diagnostics)).Equal(stored.Spec) || !imported.Devices.Equal(m.Devices) {
			t.Fatalf("imported as %+v, from %s", imported, text)
		}
	})
}

// An A40 with 46,068 MiB has 37 slots of 1,199 MiB.
func TestSlotsOfGPUPool(t *testing.T) {
	document := domain.GPUPoolDocument{
		Spec: domain.GPUPool{Sharing: domain.Slots, MemoryMiBPerSlot: 1199},
		Devices: map[string][]domain.Device{
			"a": {{UUID: "GPU-a0", MemoryMiB: 46068}}, "b": {{UUID: "GPU-b0", MemoryMiB: 32768}},
		},
	}
	devices, slots, deviceSlots := foundDevices(document)
	if want := providertest.UUIDLists(map[string][]string{"a": {"GPU-a0"}, "b": {"GPU-b0"}}); !devices.Equal(want) {
		t.Errorf("devices: got %s, want %s", devices, want)
	}
	want := types.MapValueMust(types.Int64Type,
		map[string]attr.Value{"GPU-a0": types.Int64Value(37), "GPU-b0": types.Int64Value(26)})
	if slots.ValueInt64() != 63 || !deviceSlots.Equal(want) {
		t.Errorf("got %s slots, %s; want 63, %s", slots, deviceSlots, want)
	}
}
