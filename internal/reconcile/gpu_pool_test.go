package reconcile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// gpu returns a GPU as found.
func gpu(uuid, model string, memory int64) domain.GPU {
	return domain.GPU{Device: domain.Device{UUID: uuid, Model: model, MemoryMiB: memory}}
}

// dgx has eight V100s in host a and one A40 in host b.
func dgx() map[string]domain.HostGPUs {
	var eight []domain.GPU
	for n := range strings.SplitSeq("01234567", "") {
		eight = append(eight, gpu("GPU-a"+n, "Tesla V100-SXM2-32GB", 32768))
	}
	return map[string]domain.HostGPUs{"a": {GPUs: eight}, "b": {GPUs: []domain.GPU{gpu("GPU-b0", "NVIDIA A40", 46068)}}}
}

func TestResolvePool(t *testing.T) {
	mig := true
	hosts := map[string]domain.Host{"a": {Labels: map[string]string{"gpu": "v100"}}, "b": {}}
	named := func(devices map[string][]string) domain.GPUPool {
		return domain.GPUPool{Cluster: "lab", Name: "p", Devices: devices}
	}
	selected := func(s domain.DeviceSelector) domain.GPUPool {
		return domain.GPUPool{Cluster: "lab", Name: "p", Select: &s}
	}
	slots := named(map[string][]string{"b": {"GPU-b0"}})
	slots.Sharing, slots.MemoryMiBPerSlot = domain.Slots, 1199
	large := slots
	large.MemoryMiBPerSlot = 46000
	stored := func(name string, host string, devices ...domain.Device) map[string]domain.GPUPoolDocument {
		return map[string]domain.GPUPoolDocument{name: {
			Header: domain.Header{Revision: 3}, Spec: domain.GPUPool{Name: name},
			Devices: map[string][]domain.Device{host: devices},
		}}
	}
	former := domain.Device{UUID: "GPU-c0", Model: "Tesla V100-SXM2-32GB", MemoryMiB: 32768}
	for name, test := range map[string]struct {
		spec    domain.GPUPool
		pools   map[string]domain.GPUPoolDocument
		change  func(found map[string]domain.HostGPUs)
		want    map[string][]string
		slots   int
		problem string
	}{
		"two named cards of eight": {
			spec: named(map[string][]string{"a": {"GPU-a5", "GPU-a4"}}),
			want: map[string][]string{"a": {"GPU-a5", "GPU-a4"}}, slots: 2,
		},
		"37 slots of one A40, not 38": {spec: slots, want: map[string][]string{"b": {"GPU-b0"}}, slots: 37},
		"a slot that does not fit": {
			spec:    large,
			problem: "memory_mib_per_slot: Slot larger than the device: a slot of 46000 MiB does not fit into GPU-b0 of host \"b\", which has 46068 MiB, 3 % of it in reserve",
		},
		"selected by model": {
			spec: selected(domain.DeviceSelector{Model: "*A40"}), want: map[string][]string{"b": {"GPU-b0"}}, slots: 1,
		},
		"selected by memory, at most two a host": {
			spec: selected(domain.DeviceSelector{MemoryMiB: 30000, MaxPerHost: 2}),
			want: map[string][]string{"a": {"GPU-a0", "GPU-a1"}, "b": {"GPU-b0"}}, slots: 3,
		},
		"selected by label": {
			spec: selected(domain.DeviceSelector{Labels: map[string]string{"gpu": "v100"}, MaxPerHost: 1}),
			want: map[string][]string{"a": {"GPU-a0"}}, slots: 1,
		},
		"selected again, what was selected stays": {
			spec: selected(domain.DeviceSelector{Model: "Tesla*", MaxPerHost: 2}), pools: stored("p", "a", former),
			want: map[string][]string{"a": {"GPU-c0", "GPU-a0"}}, slots: 2,
		},
		"named, and not found any more": {
			spec: named(map[string][]string{"a": {"GPU-c0", "GPU-a0"}}), pools: stored("p", "a", former),
			want: map[string][]string{"a": {"GPU-c0", "GPU-a0"}}, slots: 2,
		},
		"hosts that share a machine": {
			spec:   selected(domain.DeviceSelector{}),
			change: func(found map[string]domain.HostGPUs) { found["a"] = found["b"] },
			want:   map[string][]string{"a": {"GPU-b0"}}, slots: 1,
		},
		"no such host": {
			spec:    named(map[string][]string{"c": {"GPU-c0"}}),
			problem: `devices["c"]: Unknown host: cluster "lab" has no host "c"; its hosts are a, b`,
		},
		"no such device": {
			spec:    named(map[string][]string{"b": {"GPU-c0"}}),
			problem: `devices["b"][0]: No such GPU: host "b" has no GPU GPU-c0; it has GPU-b0 (NVIDIA A40)`,
		},
		"a device of another host": {
			spec: named(map[string][]string{"b": {"GPU-a0"}}), problem: `host "b" has no GPU GPU-a0; it is in host "a"`,
		},
		"a device that is lost": {
			spec: named(map[string][]string{"b": {"GPU-b0"}}),
			change: func(found map[string]domain.HostGPUs) {
				found["b"].GPUs[0].Trouble = "fallen off the bus (XID 79)"
			},
			problem: `devices["b"][0]: GPU can't be used: GPU-b0 of host "b" can't be in a pool: fallen off the bus (XID 79)`,
		},
		"a device that is divided": {
			spec:    named(map[string][]string{"b": {"GPU-b0"}}),
			change:  func(found map[string]domain.HostGPUs) { found["b"].GPUs[0].MIG = &mig },
			problem: "it is partitioned by MIG",
		},
		"not known, named": {
			spec:    named(map[string][]string{"b": {"GPU-b0"}}),
			change:  func(found map[string]domain.HostGPUs) { found["b"] = domain.HostGPUs{Unknown: "no driver"} },
			problem: `devices["b"][0]: GPUs unknown: unknown whether host "b" has GPU-b0: no driver`,
		},
		"not known, selected": {
			spec:    selected(domain.DeviceSelector{Hosts: []string{"b"}}),
			change:  func(found map[string]domain.HostGPUs) { found["b"] = domain.HostGPUs{Unknown: "no driver"} },
			problem: "select: GPUs unknown: the hosts' GPUs are unknown: host b: no driver",
		},
		"none selected, by model and host": {
			spec:    selected(domain.DeviceSelector{Model: "H100*", Hosts: []string{"b"}}),
			change:  func(found map[string]domain.HostGPUs) { found["a"] = domain.HostGPUs{GPUs: found["a"].GPUs[:1]} },
			problem: `select: No GPU selected: no GPU of cluster "lab" matches select; host a: GPU-a0 (Tesla V100-SXM2-32GB, 32768 MiB): "a" is not in select.hosts, and its model does not match "H100*"; host b: GPU-b0 (NVIDIA A40, 46068 MiB): its model does not match "H100*"`,
		},
		"none selected, by label and memory": {
			spec:    selected(domain.DeviceSelector{MemoryMiB: 40000, Labels: map[string]string{"gpu": "v100"}}),
			problem: `host a: GPU-a7 (Tesla V100-SXM2-32GB, 32768 MiB): it has less than 40000 MiB; host b: GPU-b0 (NVIDIA A40, 46068 MiB): the host lacks the label gpu = "v100"`,
		},
		"none selected, divided": {
			spec:    selected(domain.DeviceSelector{Model: "*A40"}),
			change:  func(found map[string]domain.HostGPUs) { found["b"].GPUs[0].MIG = &mig },
			problem: "host b: GPU-b0 (NVIDIA A40, 46068 MiB): it is partitioned by MIG",
		},
		"none selected, in trouble": {
			spec: selected(domain.DeviceSelector{Model: "*A40"}),
			change: func(found map[string]domain.HostGPUs) {
				found["b"].GPUs[0].Trouble = "fallen off the bus (XID 79)"
			},
			problem: "host b: GPU-b0 (NVIDIA A40, 46068 MiB): fallen off the bus (XID 79)",
		},
		"none selected, in another pool": {
			spec:    selected(domain.DeviceSelector{Model: "*A40", MemoryMiB: 48000}),
			pools:   stored("other", "b", domain.Device{UUID: "GPU-b0"}),
			problem: `host b: GPU-b0 (NVIDIA A40, 46068 MiB): it has less than 48000 MiB, and it is in pool "other"`,
		},
		"overlapping pools": {
			spec:    named(map[string][]string{"b": {"GPU-b0"}}),
			pools:   stored("other", "b", domain.Device{UUID: "GPU-b0"}),
			problem: `devices["b"][0]: Pools overlap: GPU-b0 of host "b" is in pools "other" and "p"; a device can be in one pool only`,
		},
		"overlapping by selection": {
			spec:    selected(domain.DeviceSelector{Model: "*A40"}),
			pools:   stored("other", "b", domain.Device{UUID: "GPU-b0"}),
			problem: `select: Pools overlap: GPU-b0 of host "b" is in pools "other" and "p"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := dgx()
			if test.change != nil {
				test.change(found)
			}
			doc, problems := reconcile.ResolvePool(reconcile.PoolView{Hosts: hosts, GPUs: found, Pools: test.pools},
				test.spec)
			if err := problems.Err(); test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("problems %v, want %q", err, test.problem)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			for uuid, why := range doc.Trouble {
				if uuid != former.UUID || why != "no longer found" {
					t.Errorf("%s is in trouble: %s", uuid, why)
				}
			}
			if doc.Has(former.UUID) != (doc.Trouble[former.UUID] != "") {
				t.Errorf("what is no longer found is said to be in trouble: %v", doc.Trouble)
			}
			if diff := cmp.Diff(test.want, doc.UUIDs()); diff != "" || doc.Slots() != test.slots ||
				doc.Revision != test.pools["p"].Revision {
				t.Errorf("%d slots, want %d, at revision %d (-want +got):\n%s", doc.Slots(), test.slots, doc.Revision,
					diff)
			}
		})
	}
}

// pooled is a group of two workers, each with a GPU of pool p.
func pooled(name string) domain.Group {
	spec := group(0, 2)
	spec.Name = name
	role := spec.Roles["worker"]
	role.GPUs = &domain.GPURequest{Pool: "p"}
	spec.Roles["worker"] = role
	return spec
}

func TestPoolIsKeptWhileInUse(t *testing.T) {
	f := newFake()
	f.gpus = []map[string]domain.HostGPUs{{"a": {Unknown: "the agent is being started"}}, dgx()}
	r := reconcile.Reconciler{Engine: f}
	ctx := t.Context()
	spec := domain.GPUPool{Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {"GPU-a4", "GPU-a5"}}}
	if _, err := r.PutPool(ctx, spec, true, nil); err != nil {
		t.Fatalf("a pool whose agent reports at the second attempt: %v", err)
	}
	if _, err := r.PutPool(ctx, spec, true, nil); err != nil {
		t.Errorf("a pool that is there as specified: %v", err)
	}
	other := spec
	other.Devices = map[string][]string{"a": {"GPU-a0"}}
	if _, err := r.PutPool(ctx, other, true, nil); err == nil ||
		!strings.Contains(err.Error(), "terraform import <address> lab/p") {
		t.Errorf("another pool of the name: %v", err)
	}

	chosen := domain.GPUPool{Cluster: "lab", Name: "chosen", Select: &domain.DeviceSelector{Model: "*A40"}}
	if _, err := r.PutPool(ctx, chosen, true, map[string][]string{"b": {"GPU-b1"}}); err == nil ||
		!strings.Contains(err.Error(), "it showed map[b:[GPU-b1]], and now there are map[b:[GPU-b0]]") {
		t.Errorf("a pool of other devices than the plan showed: %v", err)
	}

	if err := r.Update(ctx, pooled("mnist")); err != nil {
		t.Fatal(err)
	}
	assigned := map[domain.DeviceSet]bool{}
	group, err := engine.Get[domain.GroupDocument](ctx, f, "mnist")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range group.Assignments {
		assigned[at.GPUs] = true
	}
	if diff := cmp.Diff(map[domain.DeviceSet]bool{"GPU-a4": true, "GPU-a5": true}, assigned); diff != "" {
		t.Errorf("assigned devices (-want +got):\n%s", diff)
	}
	if err := r.Update(ctx, pooled("more")); err == nil || !strings.Contains(err.Error(), "mnist-worker-0") {
		t.Errorf("a group for which there are no devices: %v", err)
	}
	var inUse *reconcile.PoolInUseError
	if err := r.DeletePool(ctx, "lab", "p"); !errors.As(err, &inUse) || !strings.Contains(err.Error(), "mnist") {
		t.Errorf("a pool in use was removed: %v", err)
	}
	if err := r.Destroy(ctx, "mnist"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.DeletePool(ctx, "lab", "p"); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Pool(ctx, "p"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a pool that was removed: %v", err)
	}
}

// Values that can't be read of a known device stay as they were; all others are updated.
func TestDeviceThatIsHalfKnown(t *testing.T) {
	before := domain.Device{
		UUID: "GPU-b0", Model: "NVIDIA A40", MemoryMiB: 46068, NUMANode: new(1), Links: []string{"GPU-b1"},
	}
	whole := domain.Device{UUID: "GPU-b0", Model: "NVIDIA A40-48Q", MemoryMiB: 45000, NUMANode: new(0)}
	unread, lost := domain.GPU{
		Device: domain.Device{UUID: "GPU-b0"}, Unknown: "nvmlDeviceGetName: unknown error",
	}, domain.GPU{Device: domain.Device{UUID: "GPU-b0"}, Trouble: "fallen off the bus"}
	for name, test := range map[string]struct {
		found        domain.GPU
		before, want domain.Device
	}{
		"nothing is read":           {unread, before, before},
		"it is lost":                {lost, before, before},
		"all is read":               {domain.GPU{Device: whole}, before, whole},
		"all is read, as never yet": {domain.GPU{Device: whole}, domain.Device{UUID: "GPU-b0"}, whole},
	} {
		for by, spec := range map[string]domain.GPUPool{
			"named":    {Cluster: "lab", Name: "p", Devices: map[string][]string{"b": {"GPU-b0"}}},
			"selected": {Cluster: "lab", Name: "p", Select: &domain.DeviceSelector{}},
		} {
			doc, problems := reconcile.ResolvePool(reconcile.PoolView{
				Hosts: map[string]domain.Host{"b": {}},
				GPUs:  map[string]domain.HostGPUs{"b": {GPUs: []domain.GPU{test.found}}},
				Pools: map[string]domain.GPUPoolDocument{
					"p": {Spec: spec, Devices: map[string][]domain.Device{"b": {test.before}}},
				},
			}, spec)
			must(t, problems.Err())
			if diff := cmp.Diff(map[string][]domain.Device{"b": {test.want}}, doc.Devices); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, by, diff)
			}
		}
	}
}
