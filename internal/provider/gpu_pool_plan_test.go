package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/gpupool"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

const theGPUPool = "trainyard_gpu_pool"

// uuid returns the UUID of the nth GPU of a host.
func uuid(host string, n int) string { return fmt.Sprintf("GPU-%s%07d", host, n) }

// gpuStub is an engine with hosts a and b: eight V100s in a, and one A40 in b.
func gpuStub() *providertest.Stub {
	stub := providertest.Set(&providertest.Stub{HostGPUs: map[string]domain.HostGPUs{}}, providertest.LabOf("a", "b"))
	var eight []domain.GPU
	for n := range 8 {
		eight = append(eight, domain.GPU{
			Index: n, Device: domain.Device{UUID: uuid("a", n), Model: "Tesla V100-SXM2-32GB", MemoryMiB: 32768},
		})
	}
	stub.HostGPUs["a"] = domain.HostGPUs{GPUs: eight}
	stub.HostGPUs["b"] = domain.HostGPUs{
		GPUs: []domain.GPU{{Device: domain.Device{UUID: uuid("b", 0), Model: "NVIDIA A40", MemoryMiB: 46068}}},
	}
	return stub
}

// gpuPool returns the configuration of a pool.
func (tf terraform) gpuPool(name string, set map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	config := tf.config(theGPUPool,
		map[string]tftypes.Value{"name": providertest.Text(name), "cluster": labReference(nil)})
	maps.Copy(config, set)
	return config
}

// named returns the attribute devices, from the indexes of devices by host.
func named(t *testing.T, byHost map[string][]int) map[string]tftypes.Value {
	t.Helper()
	uuids := map[string][]string{}
	for host, numbers := range byHost {
		for _, n := range numbers {
			uuids[host] = append(uuids[host], uuid(host, n))
		}
	}
	return map[string]tftypes.Value{"devices": providertest.Raw(t, providertest.UUIDLists(uuids))}
}

// selected returns the attribute select.
func selected(t *testing.T, m gpupool.SelectorModel) map[string]tftypes.Value {
	t.Helper()
	typ, ok := gpupool.Schema(t.Context(), nil).Attributes["select"].GetType().(types.ObjectType)
	if !ok {
		t.Fatal("select is no object")
	}
	v, diags := types.ObjectValueFrom(t.Context(), typ.AttrTypes, m)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return map[string]tftypes.Value{"select": providertest.Raw(t, v)}
}

// planPool plans a pool, and fails on any diagnostic.
func (tf terraform) planPool(config, prior map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	planned, diagnostics := tf.plan(theGPUPool, config, prior)
	fatalOn(tf.t, nil, diagnostics)
	return planned
}

// applyPool plans a pool and applies it.
func (tf terraform) applyPool(config map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	state, diagnostics := tf.apply(theGPUPool, config, nil, tf.planPool(config, nil))
	fatalOn(tf.t, nil, diagnostics)
	return state
}

func TestPlanOfNewGPUPool(t *testing.T) {
	unknown := types.MapUnknown(gpupool.DevicesType)
	for name, test := range map[string]struct {
		set     map[string]tftypes.Value
		change  func(*providertest.Stub)
		devices types.Map
		slots   int
		refused string
		warned  string
	}{
		"devices that are named": {
			set:     named(t, map[string][]int{"a": {5, 4}}),
			devices: providertest.UUIDLists(map[string][]string{"a": {uuid("a", 5), uuid("a", 4)}}), slots: 2,
		},
		"devices that are chosen": {
			set:     selected(t, gpupool.SelectorModel{MaxPerHost: new(int64(1))}),
			devices: providertest.UUIDLists(map[string][]string{"a": {uuid("a", 0)}, "b": {uuid("b", 0)}}), slots: 2,
		},
		"without a cluster nothing is known": {
			set:    selected(t, gpupool.SelectorModel{}),
			change: func(e *providertest.Stub) { providertest.Drop[domain.ClusterDocument](e) }, devices: unknown,
		},
		"what is no cluster yet is not looked at": {
			set: selected(t, gpupool.SelectorModel{}), change: func(e *providertest.Stub) {
				e.Fails = providertest.Failures{"Get cluster": fmt.Errorf("hosts: %w", engine.ErrNotFormed)}
			}, devices: unknown,
		},
		"a host that can't be reached": {
			set: selected(t, gpupool.SelectorModel{}), change: func(e *providertest.Stub) {
				e.Fails = providertest.Failures{"Get cluster": fmt.Errorf("hosts: %w", engine.ErrUnreachable)}
			}, refused: "hosts: can't be reached",
		},
		"a host of which nothing is known, beside others": {
			set:     selected(t, gpupool.SelectorModel{}),
			change:  func(e *providertest.Stub) { e.HostGPUs["b"] = domain.HostGPUs{Unknown: "no NVML"} },
			devices: unknown, warned: "host b: no NVML",
		},
		"a device that is not there": {
			set:     named(t, map[string][]int{"b": {0, 1}}),
			refused: `devices["b"][1]: host "b" has no GPU ` + uuid("b", 1),
		},
		"a host that is not there": {
			set:     named(t, map[string][]int{"c": {0}}),
			refused: `devices["c"]: cluster "lab" has no host "c"; its hosts are a, b`,
		},
		"a host of which nothing is known": {
			set:     named(t, map[string][]int{"b": {0}}),
			change:  func(e *providertest.Stub) { e.HostGPUs["b"] = domain.HostGPUs{Unknown: "no NVML"} },
			refused: `devices["b"][0]: unknown whether host "b" has ` + uuid("b", 0) + ": no NVML",
		},
		"a device of another pool": {
			set: named(t, map[string][]int{"b": {0}}),
			change: func(e *providertest.Stub) {
				providertest.Set(e, domain.GPUPoolDocument{
					Spec:    domain.GPUPool{Name: "other"},
					Devices: map[string][]domain.Device{"b": {{UUID: uuid("b", 0)}}},
				})
			},
			refused: `is in pools "other" and "p"; a device can be in one pool only`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub := gpuStub()
			if test.change != nil {
				test.change(stub)
			}
			tf := newTerraform(t, stub)
			planned, diagnostics := tf.plan(theGPUPool, tf.gpuPool("p", test.set), nil)
			if test.refused != "" {
				if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, test.refused) {
					t.Errorf("got %q, want an error that says %q", details(diagnostics), test.refused)
				}
				return
			}
			if test.warned != "" && len(diagnostics) == 1 && strings.Contains(diagnostics[0].Detail, test.warned) {
				diagnostics = nil
			}
			fatalOn(t, nil, diagnostics)
			if want := providertest.Raw(t, test.devices); !planned["devices"].Equal(want) {
				t.Errorf("devices: got %s, want %s", planned["devices"], want)
			}
			known := test.devices.IsUnknown()
			if planned["slots"].IsKnown() == known || planned["device_slots"].IsKnown() == known {
				t.Errorf("slots: got %s, %s", planned["slots"], planned["device_slots"])
			}
			if want := tftypes.NewValue(tftypes.Number, test.slots); !known && !planned["slots"].Equal(want) {
				t.Errorf("slots: got %s, want %d", planned["slots"], test.slots)
			}
		})
	}
}

// If the same plan adds a host to the cluster, a pool that may include it waits for it.
func TestPlanOfGPUPoolForNewHost(t *testing.T) {
	hosts := cluster.Schema(t.Context(), nil).Attributes["hosts"].GetType()
	value, diags := types.MapValueFrom(t.Context(), elementOf(t,
		hosts), resourcekit.Flatten(domain.Cluster{Hosts: map[string]domain.Host{
		"a": providertest.Host("127.0.0.1", 4, 8000, nil), "b": providertest.Host("127.0.0.1", 4, 8000, nil),
		"c": providertest.Host("127.0.0.1", 4, 8000, map[string]string{"gpu": "new"}),
	}}, cluster.Model{}).Hosts)
	if diags.HasError() {
		t.Fatal(diags)
	}
	for name, test := range map[string]struct {
		set   map[string]tftypes.Value
		known bool
	}{
		"any host": {selected(t, gpupool.SelectorModel{}), false},
		"its label": {
			selected(t, gpupool.SelectorModel{Model: new("NVIDIA*"), Labels: map[string]string{"gpu": "new"}}), false,
		},
		"the others, by name": {selected(t, gpupool.SelectorModel{Hosts: []string{"a", "b"}}), true},
		"its device": {map[string]tftypes.Value{
			"devices": providertest.Raw(t, providertest.UUIDLists(map[string][]string{"c": {uuid("c", 0)}})),
		}, false},
		"the devices of another": {named(t, map[string][]int{"a": {1}}), true},
	} {
		tf := newTerraform(t, gpuStub())
		_, diagnostics := tf.plan("trainyard_cluster", tf.config("trainyard_cluster",
			map[string]tftypes.Value{"name": providertest.Text("lab"), "hosts": providertest.Raw(t, value)}), nil)
		fatalOn(t, nil, diagnostics)
		if planned := tf.planPool(tf.gpuPool("p", test.set), nil); planned["slots"].IsKnown() != test.known {
			t.Errorf("%s: slots are planned as %s", name, planned["slots"])
		}
	}
}

// A plan without changes asks no host for its GPUs; one with another specification does.
func TestPlanOfGPUPoolWithoutChange(t *testing.T) {
	for name, test := range map[string]struct{ set, change map[string]tftypes.Value }{
		"named": {named(t, map[string][]int{"a": {4, 5}}), named(t, map[string][]int{"a": {5, 6}})},
		"chosen": {
			selected(t, gpupool.SelectorModel{Model: new("NVIDIA*")}),
			map[string]tftypes.Value{"strategy": providertest.Text("pack")},
		},
	} {
		stub := gpuStub()
		tf := newTerraform(t, stub)
		config := tf.gpuPool("p", test.set)
		state := tf.applyPool(config)
		stub.Calls = nil
		state, diagnostics := tf.read(theGPUPool, state)
		fatalOn(t, nil, diagnostics)
		planned := tf.planPool(config, state)
		for attribute := range state {
			if !planned[attribute].Equal(state[attribute]) {
				t.Errorf("%s: %s differs: planned %s, is %s", name, attribute, planned[attribute], state[attribute])
			}
		}
		if slices.Contains(stub.Calls, "GPUs") {
			t.Errorf("%s: the plan took the calls %v", name, stub.Calls)
		}
		maps.Copy(config, test.change)
		if planned := tf.planPool(config, state); !planned["devices"].IsFullyKnown() ||
			!slices.Contains(stub.Calls, "GPUs") {
			t.Errorf("%s: after a change the devices are planned as %s, with the calls %v", name, planned["devices"],
				stub.Calls)
		}
	}
}

// As long as a pool has unusable devices, each plan shows them without asking the hosts, which the apply does.
func TestPlanOfUnhealthyGPUPool(t *testing.T) {
	for name, set := range map[string]map[string]tftypes.Value{
		"named":  named(t, map[string][]int{"a": {4, 5}}),
		"chosen": selected(t, gpupool.SelectorModel{Model: new("Tesla*")}),
	} {
		stub := gpuStub()
		tf := newTerraform(t, stub)
		config := tf.gpuPool("p", set)
		state := tf.applyPool(config)
		providertest.Change(stub, "p", func(pool *domain.GPUPoolDocument) {
			pool.Trouble = map[string]string{uuid("a", 5): "fallen off the bus (XID 79)"}
		})
		stub.HostGPUs["a"].GPUs[5].Trouble = "no longer found"
		for _, why := range []string{"fallen off the bus (XID 79)", "no longer found"} {
			stub.Calls = nil
			tf = newTerraform(t, stub) // another run
			state, diagnostics := tf.read(theGPUPool, state)
			fatalOn(t, nil, diagnostics)
			if got := providertest.TextsOf(t,
				state["unhealthy"]); !maps.Equal(got, map[string]string{uuid("a", 5): "host a: " + why}) {
				t.Errorf("%s: unhealthy is %v", name, got)
			}
			planned, diagnostics := tf.plan(theGPUPool, config, state)
			if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
				!strings.Contains(diagnostics[0].Detail, uuid("a", 5)+" of host a: "+why) {
				t.Errorf("%s: got %q", name, details(diagnostics))
			}
			for attribute := range state {
				if planned[attribute].Equal(state[attribute]) == (attribute == "unhealthy") {
					t.Errorf("%s: planned %s as %s, is %s", name, attribute, planned[attribute], state[attribute])
				}
			}
			if slices.Contains(stub.Calls, "GPUs") || planned["unhealthy"].IsKnown() {
				t.Errorf("%s: planned %s, with the calls %v", name, planned["unhealthy"], stub.Calls)
			}
			state, diagnostics = tf.apply(theGPUPool, config, state, planned)
			fatalOn(t, nil, diagnostics)
			if got := providertest.TextsOf(t, state["unhealthy"]); got[uuid("a", 5)] != "host a: no longer found" ||
				!slices.Contains(stub.Calls, "GPUs") {
				t.Errorf("%s: after the apply unhealthy is %v, with the calls %v", name, got, stub.Calls)
			}
		}

		providertest.Change(stub, "p", func(pool *domain.GPUPoolDocument) { pool.Trouble = nil })
		tf = newTerraform(t, stub)
		state, diagnostics := tf.read(theGPUPool, state)
		fatalOn(t, nil, diagnostics)
		for attribute, planned := range tf.planPool(config, state) {
			if !planned.Equal(state[attribute]) {
				t.Errorf("%s: after the recovery %s is planned as %s, is %s", name, attribute, planned,
					state[attribute])
			}
		}
	}
}

// An update that does not change the pool keeps the selected devices.
func TestUpdateOfGPUPoolInNameOnly(t *testing.T) {
	stub := gpuStub()
	tf := newTerraform(t, stub)
	config := tf.gpuPool("p", selected(t, gpupool.SelectorModel{}))
	state := tf.applyPool(config)
	stub.HostGPUs["b"] = domain.HostGPUs{}
	config["cluster"] = labReference("ssh://elsewhere")
	planned := tf.planPool(config, state)
	if planned["cluster"].Equal(state["cluster"]) || !planned["devices"].Equal(state["devices"]) {
		t.Errorf("planned %v", planned)
	}
	stub.Calls = nil
	changed, diagnostics := tf.apply(theGPUPool, config, state, planned)
	fatalOn(t, nil, diagnostics)
	if !changed["devices"].Equal(state["devices"]) || slices.Contains(stub.Calls, "Put gpu-pool") {
		t.Errorf("got %s, by %v", changed["devices"], stub.Calls)
	}
}

// Pools of one plan know of each other, in any order.
func TestPlanOfOverlappingGPUPools(t *testing.T) {
	tf := newTerraform(t, gpuStub())
	tf.planPool(tf.gpuPool("left", named(t, map[string][]int{"a": {0, 1}})), nil)
	right := tf.gpuPool("right", named(t, map[string][]int{"a": {1, 2}}))
	_, diagnostics := tf.plan(theGPUPool, right, nil)
	if len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail,
			`devices["a"][0]: `+uuid("a", 1)+` of host "a" is in pools "left" and "right"`) {
		t.Errorf("got %q", details(diagnostics))
	}

	// A pool that is replaced or destroyed leaves its devices to others.
	for name, next := range map[string]func(tf terraform) map[string]tftypes.Value{
		"goes": func(terraform) map[string]tftypes.Value { return nil },
		"is replaced": func(tf terraform) map[string]tftypes.Value {
			return tf.gpuPool("elsewhere", named(t, map[string][]int{"b": {0}}))
		},
	} {
		tf := newTerraform(t, gpuStub())
		left := tf.applyPool(tf.gpuPool("left", named(t, map[string][]int{"a": {0, 1}})))
		_, diagnostics := tf.plan(theGPUPool, next(tf), left)
		fatalOn(t, nil, diagnostics)
		if _, diagnostics := tf.plan(theGPUPool, right, nil); len(diagnostics) > 0 {
			t.Errorf("where the other %s: got %q", name, details(diagnostics))
		}
	}
}

// A group that is destroyed leaves its GPUs to what is planned after it. Its members use them until the apply, even if
// the agent can't see by which processes.
func TestPlanOfGPUsThatAreLeft(t *testing.T) {
	type config = map[string]tftypes.Value
	workers := func(tf terraform, name string, n int64) config {
		return tf.groupOf(name, group.RoleModel{
			Replicas: &n, GPUs: &group.RoleGPUsModel{Pool: "p"},
			TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}},
		})
	}
	for name, test := range map[string]struct {
		becomes, next func(tf terraform) config
		refused       bool
	}{
		"it goes on": {
			becomes: func(tf terraform) config { return workers(tf, "g", 2) },
			next:    func(tf terraform) config { return workers(tf, "other", 1) }, refused: true,
		},
		"it is replaced": {
			becomes: func(terraform) config { return nil },
			next:    func(tf terraform) config { return workers(tf, "g", 2) },
		},
		"it makes room": {
			becomes: func(terraform) config { return nil },
			next:    func(tf terraform) config { return workers(tf, "other", 2) },
		},
		"it is renamed": {
			becomes: func(tf terraform) config { return workers(tf, "other", 2) },
			next:    func(tf terraform) config { return workers(tf, "other", 2) },
		},
		"it has fewer members": {
			becomes: func(tf terraform) config { return workers(tf, "g", 1) },
			next:    func(tf terraform) config { return workers(tf, "other", 1) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub := gpuStub()
			tf := newTerraform(t, stub)
			tf.applyPool(tf.gpuPool("p", named(t, map[string][]int{"a": {4, 5}})))
			two := 2
			providertest.Set(stub, domain.GroupDocument{
				Header: domain.Header{Revision: 1}, MinRun: 1, Counts: map[string]int{"worker": two},
				Spec: domain.Group{
					Cluster: "lab", Name: "g", Framework: "none", RestartScope: domain.ScopeMember,
					WaitFor: domain.WaitRunning,
					Roles: map[string]domain.Role{"worker": {
						Replicas: &two, GPUs: &domain.GPURequest{Pool: "p"},
						Template: domain.Template{Command: []string{"/bin/true"}},
					}},
				},
				Assignments: map[string]domain.Assignment{
					"g-worker-0": {Host: "a", Port: 9000, GPUs: domain.NewDeviceSet(uuid("a", 4))},
					"g-worker-1": {Host: "a", Port: 9001, GPUs: domain.NewDeviceSet(uuid("a", 5))},
				},
			})
			for _, n := range []int{4, 5} {
				stub.HostGPUs["a"].GPUs[n].MemoryUsedMiB = new(int64(20_000))
			}
			prior := workers(tf, "g", 2)
			prior["id"] = providertest.Text("lab/g")
			_, diagnostics := tf.plan("trainyard_group", test.becomes(tf), prior)
			fatalOn(t, nil, diagnostics)
			_, diagnostics = tf.plan("trainyard_group", test.next(tf), nil)
			if (len(diagnostics) > 0) != test.refused {
				t.Errorf("got %q, refused: %t", details(diagnostics), test.refused)
			}
		})
	}
}
