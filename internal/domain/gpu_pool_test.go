package domain

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	gpuA = "GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91"
	gpuB = "GPU-5a17c3d2-77f0-4c51-8a0b-1f6f0f1f2b3c"
)

func TestGPUPoolValidate(t *testing.T) {
	percent := func(p float64) *float64 { return &p }
	named := map[string][]string{"gpu1": {gpuA}}
	for name, c := range map[string]struct {
		pool GPUPool
		want []string
	}{
		"by name": {GPUPool{Name: "v100", Devices: map[string][]string{"gpu1": {gpuA}, "gpu2": {gpuB}}}, nil},
		"by select": {
			GPUPool{Name: "v100", Select: &DeviceSelector{Model: "Tesla V100*", MemoryMiB: 16_000, MaxPerHost: 4}}, nil,
		},
		"all": {GPUPool{Name: "all", Select: &DeviceSelector{}}, nil},
		"slots": {
			GPUPool{
				Name: "a40", Devices: named, Sharing: Slots, MemoryMiBPerSlot: 1199, ReservePercent: percent(0),
				Strategy: Pack, OnForeignProcess: ForeignWarn,
			}, nil,
		},
		"bad name": {GPUPool{Name: "V100", Devices: named}, []string{"name"}},
		"neither":  {GPUPool{Name: "p"}, []string{"devices"}},
		"both":     {GPUPool{Name: "p", Devices: named, Select: &DeviceSelector{}}, []string{"select"}},
		"no hosts": {GPUPool{Name: "p", Devices: map[string][]string{}}, []string{"devices"}},
		"no devices of a host": {
			GPUPool{Name: "p", Devices: map[string][]string{"gpu1": {gpuA}, "gpu2": {}}}, []string{`devices["gpu2"]`},
		},
		"a device twice": {
			GPUPool{Name: "p", Devices: map[string][]string{"gpu1": {gpuA, gpuB, gpuA}, "gpu2": {gpuB}}},
			[]string{`devices["gpu1"][2]`, `devices["gpu2"][0]`},
		},
		"an index": {
			GPUPool{Name: "p", Devices: map[string][]string{"gpu1": {"0"}}}, []string{`devices["gpu1"][0]`},
		},
		"a part of a GPU": {
			GPUPool{Name: "p", Devices: map[string][]string{"gpu1": {"MIG-" + gpuA[4:]}}},
			[]string{`devices["gpu1"][0]`},
		},
		"no UUID": {
			GPUPool{Name: "p", Devices: map[string][]string{"gpu1": {"GPU-", "GPU-4fa6,GPU-5a17", "GPU-xyz"}}},
			[]string{`devices["gpu1"][0]`, `devices["gpu1"][1]`, `devices["gpu1"][2]`},
		},
		"invalid selector": {
			GPUPool{Name: "p", Select: &DeviceSelector{Model: "[a-", MemoryMiB: -1, MaxPerHost: -1}},
			[]string{"select.model", "select.memory_mib", "select.max_per_host"},
		},
		"slots without a size": {GPUPool{Name: "p", Devices: named, Sharing: Slots}, []string{"memory_mib_per_slot"}},
		"a size without slots": {
			GPUPool{Name: "p", Devices: named, MemoryMiBPerSlot: 1, ReservePercent: percent(3)},
			[]string{"memory_mib_per_slot", "reserve_percent"},
		},
		"all in reserve": {
			GPUPool{Name: "p", Devices: named, Sharing: Slots, MemoryMiBPerSlot: 1, ReservePercent: percent(100)},
			[]string{"reserve_percent"},
		},
		"a negative reserve": {
			GPUPool{Name: "p", Devices: named, Sharing: Slots, MemoryMiBPerSlot: 1, ReservePercent: percent(-0.5)},
			[]string{"reserve_percent"},
		},
		"a reserve of nonsense": {
			GPUPool{
				Name: "p", Devices: named, Sharing: Slots, MemoryMiBPerSlot: 1, ReservePercent: percent(math.NaN()),
			},
			[]string{"reserve_percent"},
		},
		"unknown words": {
			GPUPool{Name: "p", Devices: named, Sharing: "time", Strategy: OnePerHost, OnForeignProcess: "kill"},
			[]string{"sharing", "strategy", "on_foreign_process"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range c.pool.Validate() {
				got = append(got, p.Path.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("paths of the problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGPUPoolDefaults(t *testing.T) {
	var p GPUPool
	if got := p.SharingRule(); got != Exclusive {
		t.Errorf("sharing is %q", got)
	}
	if got := p.ForeignRule(); got != ForeignAvoid {
		t.Errorf("the rule about devices in use by others is %q", got)
	}
	if got := p.Reserve(); got != DefaultReservePercent/100 {
		t.Errorf("the reserve is %v", got)
	}
	if got := (GPURequest{}).Devices(); got != 1 {
		t.Errorf("%d devices are asked for", got)
	}
}

func TestSlotsOf(t *testing.T) {
	slots := func(mib int64, percent float64) GPUPool {
		return GPUPool{Sharing: Slots, MemoryMiBPerSlot: mib, ReservePercent: &percent}
	}
	for name, c := range map[string]struct {
		pool GPUPool
		mib  int64
		want int
	}{
		"exclusive":                    {GPUPool{}, 46_068, 1},
		"an A40, by default":           {GPUPool{Sharing: Slots, MemoryMiBPerSlot: 1199}, 46_068, 37},
		"an A40, with nothing held":    {slots(1199, 0), 46_068, 38},
		"an A40, with a part reserved": {slots(1199, 10.5), 46_068, 34},
		"to the last MiB":              {slots(16_160, 0), 16_160, 1},
		"too small":                    {slots(16_161, 0), 16_160, 0},
		"what rounds down to less":     {slots(1200, 7), 40_000, 31},
		"no memory":                    {slots(1, 3), 0, 0},
		"no size":                      {GPUPool{Sharing: Slots}, 16_160, 0},
	} {
		if got := c.pool.SlotsOf(Device{MemoryMiB: c.mib}); got != c.want {
			t.Errorf("%s: %d slots, want %d", name, got, c.want)
		}
	}
}

func TestSlotsFor(t *testing.T) {
	slots := GPUPool{Sharing: Slots, MemoryMiBPerSlot: 1000}
	for name, c := range map[string]struct {
		pool GPUPool
		mib  int64
		want int
	}{
		"exclusive":        {GPUPool{}, 40_000, 1},
		"nothing asked":    {slots, 0, 1},
		"less than a slot": {slots, 1, 1},
		"a slot":           {slots, 1000, 1},
		"more than a slot": {slots, 1001, 2},
		"many":             {slots, 10_000, 10},
		"no size":          {GPUPool{Sharing: Slots}, 10_000, 1},
	} {
		if got := c.pool.SlotsFor(GPURequest{Pool: "p", Count: new(2), MemoryMiB: c.mib}); got != c.want {
			t.Errorf("%s: %d slots, want %d", name, got, c.want)
		}
	}
}

func TestGPUPoolDocument(t *testing.T) {
	d := GPUPoolDocument{
		Spec: GPUPool{Sharing: Slots, MemoryMiBPerSlot: 1199},
		Devices: map[string][]Device{
			"gpu1": {{UUID: gpuB, MemoryMiB: 46_068}, {UUID: gpuA, MemoryMiB: 16_160}}, "gpu2": nil,
		},
	}
	if got := d.Slots(); got != 37+13 {
		t.Errorf("%d slots, want 50", got)
	}
	if diff := cmp.Diff(map[string][]string{"gpu1": {gpuB, gpuA}}, d.UUIDs()); diff != "" {
		t.Errorf("UUIDs (-want +got):\n%s", diff)
	}
	d.Trouble = map[string]string{gpuA: "fallen off the bus (XID 79)", "GPU-00000000": "of a device that was taken out"}
	if diff := cmp.Diff(map[string]string{gpuA: "host gpu1: fallen off the bus (XID 79)"}, d.Unhealthy()); diff != "" {
		t.Errorf("unhealthy devices (-want +got):\n%s", diff)
	}
	d.Spec = GPUPool{}
	if got := d.Slots(); got != 2 {
		t.Errorf("%d exclusive devices, want 2", got)
	}
}

func TestDeviceSelectorMatches(t *testing.T) {
	device := Device{Model: "NVIDIA A100/SXM4-40GB", MemoryMiB: 40_960}
	labels := map[string]string{"zone": "1", "spot": ""}
	for name, c := range map[string]struct {
		selector DeviceSelector
		want     bool
	}{
		"anything":              {DeviceSelector{}, true},
		"the whole name":        {DeviceSelector{Model: "NVIDIA A100/SXM4-40GB"}, true},
		"a part of the name":    {DeviceSelector{Model: "A100"}, false},
		"any characters":        {DeviceSelector{Model: "*A100*"}, true},
		"any, across a slash":   {DeviceSelector{Model: "NVIDIA*40GB"}, true},
		"one character":         {DeviceSelector{Model: "NVIDIA A?00*"}, true},
		"one of some":           {DeviceSelector{Model: "NVIDIA A[12]00*"}, true},
		"another case":          {DeviceSelector{Model: "nvidia*"}, false},
		"a slash that is not":   {DeviceSelector{Model: "NVIDIA A100-SXM4*"}, false},
		"an invalid pattern":    {DeviceSelector{Model: "["}, false},
		"as much memory":        {DeviceSelector{MemoryMiB: 40_960}, true},
		"more memory":           {DeviceSelector{MemoryMiB: 40_961}, false},
		"its host":              {DeviceSelector{Hosts: []string{"gpu2", "gpu1"}}, true},
		"other hosts":           {DeviceSelector{Hosts: []string{"gpu2"}}, false},
		"its labels":            {DeviceSelector{Labels: map[string]string{"zone": "1", "spot": ""}}, true},
		"another value":         {DeviceSelector{Labels: map[string]string{"zone": "2"}}, false},
		"a label that is not":   {DeviceSelector{Labels: map[string]string{"rack": ""}}, false},
		"all but one condition": {DeviceSelector{Model: "NVIDIA*", Hosts: []string{"gpu1"}, MemoryMiB: 80_000}, false},
	} {
		if got := c.selector.Matches("gpu1", labels, device); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDeviceSet(t *testing.T) {
	for _, c := range []struct {
		uuids []string
		want  DeviceSet
	}{
		{nil, ""},
		{[]string{gpuA}, gpuA},
		{[]string{gpuB, gpuA}, gpuB + "," + gpuA},
	} {
		set := NewDeviceSet(c.uuids...)
		if set != c.want {
			t.Errorf("the set of %v is %q, want %q", c.uuids, set, c.want)
		}
		if diff := cmp.Diff(c.uuids, set.UUIDs()); diff != "" {
			t.Errorf("UUIDs of %q (-want +got):\n%s", set, diff)
		}
	}
}

func TestCheckUUIDSaysWhatToDo(t *testing.T) {
	for uuid, part := range map[string]string{
		"0":                 "nvidia-smi -L",
		"MIG-" + gpuA[4:]:   "whole GPUs",
		"GPU-4fa6a2a8, etc": `"GPU-4fa6a2a8, etc" is not a GPU UUID`,
	} {
		var ps Problems
		CheckUUID(&ps, Path{"devices"}, uuid)
		if len(ps) != 1 || !strings.Contains(ps[0].Detail, part) {
			t.Errorf("%s: %v does not say %q", uuid, ps, part)
		}
	}
}
