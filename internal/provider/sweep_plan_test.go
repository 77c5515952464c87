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
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/sweep"
	core "github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

const theSweep = "trainyard_sweep"

// sweep returns the configuration of a sweep "lr" of runs a and b.
func (tf terraform) sweep(changes ...func(*sweep.Model)) map[string]tftypes.Value {
	tf.t.Helper()
	m := sweep.Model{
		Cluster: resourcekit.ClusterReference{
			Name: types.StringValue("lab"),
		}, Name: types.StringValue("lr"), TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}},
		Runs:     packed.Of(map[string]map[string]string{"a": {"LR": "0.1"}, "b": {"LR": "0.2"}}),
		Triggers: types.MapNull(types.StringType), Timeouts: providertest.NoTimeouts(sweep.Schema(tf.t.Context(), nil)),
	}
	for _, change := range changes {
		change(&m)
	}
	var attributes map[string]tftypes.Value
	if err := configurationOf(tf.t, sweep.Schema(tf.t.Context(), nil), m).As(&attributes); err != nil {
		tf.t.Fatal(err)
	}
	return attributes
}

// planSweep plans a sweep, and fails on any diagnostic.
func (tf terraform) planSweep(config, prior map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	planned, diagnostics := tf.plan(theSweep, config, prior)
	fatalOn(tf.t, nil, diagnostics)
	return planned
}

// applySweep plans a sweep and applies it.
func (tf terraform) applySweep(config map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	state, diagnostics := tf.apply(theSweep, config, nil, tf.planSweep(config, nil))
	fatalOn(tf.t, nil, diagnostics)
	return state
}

// ran sets the state of runs of the stored sweep "lr".
func ran(stub *providertest.Stub, runs map[string]domain.Run) {
	doc := providertest.Documents[domain.SweepDocument](stub)["lr"]
	spec, _ := core.Join(doc, providertest.Documents[domain.SweepRuns](stub))
	for key, run := range runs {
		run.Revision, run.Seal, run.Attempts = doc.Revision, core.Seal(spec.Run(key)), max(run.Attempts, 1)
		runs[key] = run
	}
	providertest.Set(stub, domain.SweepRecord{Sweep: "lr", Part: "0", ID: doc.ID, Runs: runs})
}

func TestPlanOfNewSweep(t *testing.T) {
	a40 := func(request group.RoleGPUsModel) func(*sweep.Model) {
		return func(m *sweep.Model) { m.GPUs = &request }
	}
	for name, test := range map[string]struct {
		change  func(*sweep.Model)
		refused []string
	}{
		"that fits": {
			change: func(m *sweep.Model) { m.Resources = &group.ResourcesModel{CPUs: types.Float64Value(4)} },
		},
		"beyond any host": {
			func(m *sweep.Model) { m.Resources = &group.ResourcesModel{CPUs: types.Float64Value(5)} },
			[]string{"resources.cpus: ", "requests 5 CPUs", "4 CPUs"},
		},
		"of a pool": {change: a40(group.RoleGPUsModel{Pool: "shared", MemoryMiB: new(int64(1199))})},
		"of an unknown pool": {
			a40(group.RoleGPUsModel{Pool: "absent"}),
			[]string{"gpus.pool: ", `has no GPU pool "absent"; its pools are shared`},
		},
		"beyond any card": {
			a40(group.RoleGPUsModel{Pool: "shared", MemoryMiB: new(int64(50_000))}),
			[]string{"gpus.memory_mib: ", "37 slots"},
		},
		"on hosts that are no": {
			func(m *sweep.Model) { m.Placement = &group.PlacementModel{Hosts: []string{"c"}} },
			[]string{"placement.hosts[0]: ", "a, b"},
		},
		"by a label of no host": {
			func(m *sweep.Model) { m.Placement = &group.PlacementModel{SpreadBy: new("rack")} },
			[]string{"placement.spread_by: ", `label "rack"`},
		},
		"beyond any card with its reserve": {
			func(m *sweep.Model) {
				m.GPUs = &group.RoleGPUsModel{Pool: "shared", MemoryMiB: new(int64(44_000))}
				m.Admission = &sweep.AdmissionModel{FreeGPUMemory: new(true), ReservePercent: types.Float64Value(10)}
			}, []string{"46068 MiB"},
		},
		"of a group's name": {
			func(m *sweep.Model) { m.Name = types.StringValue("g") }, []string{"name: ", `has a group "g"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub := providertest.Set(gpuStub(), providertest.ObservedGroup(t, false).Document)
			tf := newTerraform(t, stub)
			tf.planPool(tf.gpuPool("shared", map[string]tftypes.Value{
				"devices": named(t, map[string][]int{"b": {0}})["devices"], "sharing": providertest.Text("slots"),
				"memory_mib_per_slot": tftypes.NewValue(tftypes.Number, 1199),
			}), nil)
			planned, diagnostics := tf.plan(theSweep, tf.sweep(test.change), nil)
			message := strings.Join(details(diagnostics), "\n")
			for _, part := range test.refused {
				if !strings.Contains(message, part) {
					t.Errorf("it says %q, not %q", message, part)
				}
			}
			if len(test.refused) > 0 {
				return
			}
			fatalOn(t, nil, diagnostics)
			if planned["id"].IsKnown() {
				t.Errorf("the id of a new sweep is planned as %s", planned["id"])
			}
		})
	}
}

// Checks that depend on unknown values are deferred.
func TestPlanOfSweepThatIsDeferred(t *testing.T) {
	huge := func(m *sweep.Model) { m.Resources = &group.ResourcesModel{CPUs: types.Float64Value(64)} }
	for name, test := range map[string]struct {
		stub  *providertest.Stub
		other func(tf terraform)
		open  string
	}{
		"without a cluster": {stub: &providertest.Stub{}},
		"a cluster whose hosts are open": {stub: gpuStub(), other: func(tf terraform) {
			config := tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")})
			config["hosts"] = tftypes.NewValue(config["hosts"].Type(), tftypes.UnknownValue)
			_, diagnostics := tf.plan("trainyard_cluster", config, nil)
			fatalOn(t, nil, diagnostics)
		}},
		"an unknown image": {stub: gpuStub(), open: `AttributeName("image")`},
		"an unknown variable": {
			stub: gpuStub(), open: `AttributeName("runs").ElementKeyString("a").ElementKeyString("LR")`,
		},
		"an unknown name":      {stub: gpuStub(), open: `AttributeName("name")`},
		"an unknown reference": {stub: gpuStub(), open: `AttributeName("cluster")`},
	} {
		t.Run(name, func(t *testing.T) {
			tf := newTerraform(t, test.stub)
			if test.other != nil {
				test.other(tf)
			}
			config := tf.sweep(huge)
			if test.open != "" {
				whole := without(t, tftypes.NewValue(tf.schemas[theSweep].ValueType(), config), test.open)
				if err := whole.As(&config); err != nil {
					t.Fatal(err)
				}
			}
			tf.planSweep(config, nil)
		})
	}
	// Unknown devices are no reason to refuse runs that ask for some.
	tf := newTerraform(t, gpuStub())
	config := tf.gpuPool("p", nil)
	config["devices"] = tftypes.NewValue(config["devices"].Type(), tftypes.UnknownValue)
	tf.planPool(config, nil)
	tf.planSweep(tf.sweep(func(m *sweep.Model) { m.GPUs = &group.RoleGPUsModel{Pool: "p"} }), nil)
}

// A plan without changes is empty, and takes the same number of engine calls for any number of runs.
func TestPlanOfSweepWithoutChange(t *testing.T) {
	var calls [][]string
	for _, n := range []int{1, 500} {
		stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
		tf := newTerraform(t, stub)
		config := tf.sweep(func(m *sweep.Model) { m.Runs = packed.Of(manyRuns(n)) })
		state := tf.applySweep(config)
		tf = newTerraform(t, stub) // another run
		stub.Calls = nil
		state, diagnostics := tf.read(theSweep, state)
		fatalOn(t, nil, diagnostics)
		for attribute, planned := range tf.planSweep(config, state) {
			if !planned.Equal(state[attribute]) {
				t.Errorf("%d runs: %s differs: planned %s, is %s", n, attribute, planned, state[attribute])
			}
		}
		calls = append(calls, stub.Calls)
		if slices.Contains(stub.Calls, "Preflight") {
			t.Errorf("%d runs: hosts are looked at for nothing: %v", n, stub.Calls)
		}
	}
	if !slices.Equal(calls[0], calls[1]) {
		t.Errorf("1 run: calls %v; 500 runs: %v", calls[0], calls[1])
	}
}

// A plan without changes allocates no more for a thousand runs than for one, except for their bytes.
func TestPlanOfSweepWalksNoRuns(t *testing.T) {
	var allocations []float64
	for _, n := range []int{1, 1000} {
		tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
		config := tf.sweep(func(m *sweep.Model) { m.Runs = packed.Of(manyRuns(n)) })
		state := tf.object(theSweep, tf.applySweep(config))
		request := &tfprotov6.PlanResourceChangeRequest{
			TypeName: theSweep, Config: tf.object(theSweep, config), PriorState: state, ProposedNewState: state,
		}
		allocations = append(allocations, testing.AllocsPerRun(3, func() {
			resp, err := tf.server.PlanResourceChange(t.Context(), request)
			fatalOn(t, err, resp.Diagnostics)
		}))
	}
	if allocations[1] > 1.1*allocations[0] {
		t.Errorf("a plan of 1 run allocates %.0f times, of 1000 runs %.0f times", allocations[0], allocations[1])
	}
}

func manyRuns(n int) map[string]map[string]string {
	runs := make(map[string]map[string]string, n)
	for i := range n {
		runs[fmt.Sprintf("seed-%d", i)] = map[string]string{"SEED": fmt.Sprint(i), "LR": "0.01"}
	}
	return runs
}

// addRuns adds or changes runs of a sweep.
func addRuns(m *sweep.Model, runs map[string]map[string]string) {
	all, _ := m.Runs.Unpack()
	maps.Copy(all, runs)
	m.Runs = packed.Of(all)
}

// A plan says how many runs start again.
func TestPlanOfSweepReportsReruns(t *testing.T) {
	image := func(m *sweep.Model) { m.Command = []string{"/bin/false"} }
	failed := func(m *sweep.Model) { m.Rerun = types.StringValue("failed") }
	for name, test := range map[string]struct {
		stored, change func(*sweep.Model)
		says           []string // empty for no warning
	}{
		"another program": {
			change: image, says: []string{`Sweep "lr": 3 runs start anew`, "3 of its 4 runs were started before"},
		},
		"another program, where the failed are rerun": {stored: failed, change: func(m *sweep.Model) {
			failed(m)
			image(m)
		}, says: []string{`Sweep "lr": 1 run starts anew`}},
		"another environment of one": {change: func(m *sweep.Model) {
			m.Runs = packed.Of(map[string]map[string]string{"a": {"LR": "0.9"}, "b": {"LR": "0.2"}, "e": {}})
		}, says: []string{`Sweep "lr": 1 run starts anew`, "1 of its 3 runs", "New: 1. Removed: 2."}},
		"another environment of one that waits": {change: func(m *sweep.Model) {
			addRuns(m, map[string]map[string]string{"d": {"LR": "0.9"}})
		}},
		"a bound": {change: func(m *sweep.Model) { m.MaxParallel = new(int64(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
			tf := newTerraform(t, stub)
			four := func(m *sweep.Model) {
				addRuns(m, map[string]map[string]string{"c": {"LR": "0.3"}, "d": {"LR": "0.4"}})
			}
			stored, changed := []func(*sweep.Model){four}, []func(*sweep.Model){four, test.change}
			if test.stored != nil {
				stored = append(stored, test.stored)
			}
			state := tf.applySweep(tf.sweep(stored...))
			ran(stub, map[string]domain.Run{
				"a": {State: domain.RunSucceeded}, "b": {State: domain.RunFailed}, "c": {State: domain.RunRunning},
			})
			tf = newTerraform(t, stub)
			_, diagnostics := tf.plan(theSweep, tf.sweep(changed...), state)
			message := strings.Join(details(diagnostics), "\n")
			for _, part := range test.says {
				if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
					!strings.Contains(message, part) {
					t.Errorf("got %q, want a warning that says %q", message, part)
				}
			}
			if test.says == nil {
				fatalOn(t, nil, diagnostics)
			}
		})
	}
}

// Groups and sweeps of one plan can't share a name, and may use what a destroyed sweep leaves.
func TestPlanOfGroupBesideSweep(t *testing.T) {
	workers := func(tf terraform, name string) map[string]tftypes.Value {
		return tf.group(name, role{replicas: 1, port: 9000, cpus: 3})
	}
	for name, test := range map[string]struct {
		group   string
		becomes func(tf terraform) map[string]tftypes.Value
		refused string
	}{
		"that goes on":         {"g", func(tf terraform) map[string]tftypes.Value { return tf.sweep() }, "CPUs free"},
		"that leaves":          {"g", func(terraform) map[string]tftypes.Value { return nil }, ""},
		"that leaves its name": {"lr", func(terraform) map[string]tftypes.Value { return nil }, ""},
		"that keeps its name": {
			"lr", func(tf terraform) map[string]tftypes.Value { return tf.sweep() }, `has a sweep "lr"`,
		},
		"that takes another one's name": {"other", func(tf terraform) map[string]tftypes.Value {
			return tf.sweep(func(m *sweep.Model) { m.Name = types.StringValue("other") })
		}, `has a sweep "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
			tf := newTerraform(t, stub)
			state := tf.applySweep(
				tf.sweep(func(m *sweep.Model) { m.Resources = &group.ResourcesModel{CPUs: types.Float64Value(2)} }),
			)
			ran(stub, map[string]domain.Run{
				"a": {State: domain.RunRunning, Assignment: &domain.Assignment{Host: "local", Port: 9000}},
			})
			stub.Busy = map[string][]int{"127.0.0.1": {9000}}
			tf = newTerraform(t, stub)
			_, diagnostics := tf.plan(theSweep, test.becomes(tf), state)
			fatalOn(t, nil, diagnostics)
			_, diagnostics = tf.plan("trainyard_group", workers(tf, test.group), nil)
			if message := strings.Join(details(diagnostics), "\n"); (message == "") != (test.refused == "") ||
				!strings.Contains(message, test.refused) {
				t.Errorf("got %q, want %q", message, test.refused)
			}
		})
	}
}

// A destroyed sweep leaves its GPUs to a group that is planned after it, though its runs use them until the apply.
func TestPlanOfGPUsThatSweepLeaves(t *testing.T) {
	for name, leaves := range map[string]bool{"it goes on": false, "it goes": true} {
		stub := gpuStub()
		tf := newTerraform(t, stub)
		tf.applyPool(tf.gpuPool("p", named(t, map[string][]int{"b": {0}})))
		config := tf.sweep(func(m *sweep.Model) { m.GPUs = &group.RoleGPUsModel{Pool: "p"} })
		state := tf.applySweep(config)
		ran(stub, map[string]domain.Run{"a": {
			State:      domain.RunRunning,
			Assignment: &domain.Assignment{Host: "b", GPUs: domain.NewDeviceSet(uuid("b", 0))},
		}})
		stub.HostGPUs["b"].GPUs[0].MemoryUsedMiB = new(int64(20_000))
		tf = newTerraform(t, stub)
		if leaves {
			config = nil
		}
		_, diagnostics := tf.plan(theSweep, config, state)
		fatalOn(t, nil, diagnostics)
		_, diagnostics = tf.plan("trainyard_group", tf.gpuGroup("other", 1), nil)
		if refused := len(diagnostics) > 0; refused == leaves {
			t.Errorf("%s: got %q", name, details(diagnostics))
		}
	}
}

// A sweep can't take the name of a planned group, but that of one that is destroyed.
func TestPlanOfSweepBesideGroup(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	_, diagnostics := tf.plan("trainyard_group", tf.group("lr", role{replicas: 1}), nil)
	fatalOn(t, nil, diagnostics)
	if _, diagnostics = tf.plan(theSweep, tf.sweep(), nil); len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, `has a group "lr"`) {
		t.Errorf("got %q", details(diagnostics))
	}

	tf = newTerraform(t, providertest.Set(providertest.Set(&providertest.Stub{}, providertest.LabOf("local")),
		providertest.ObservedGroup(t, false).Document))
	_, diagnostics = tf.plan("trainyard_group", nil, tf.group("g", role{replicas: 2, port: 9000}))
	fatalOn(t, nil, diagnostics)
	tf.planSweep(tf.sweep(func(m *sweep.Model) { m.Name = types.StringValue("g") }), nil)
}

func TestValidateSweep(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	for name, test := range map[string]struct {
		change func(*sweep.Model)
		says   []string
	}{
		"no runs": {
			func(m *sweep.Model) { m.Runs = packed.Of(map[string]map[string]string{}) }, []string{"No runs: runs: "},
		},
		"a key": {
			func(m *sweep.Model) { m.Runs = packed.Of(map[string]map[string]string{"LR_1": {}}) },
			[]string{`runs["LR_1"]: "LR_1"`, `such as "lr-1"`},
		},
		"max_parallel": {
			func(m *sweep.Model) { m.MaxParallel = new(int64(0)) }, []string{"max_parallel: must be 1 or more, got 0"},
		},
		"a pattern": {
			func(m *sweep.Model) { m.Objective = &sweep.ObjectiveModel{Pattern: "loss=.*"} },
			[]string{`objective.pattern: "loss=.*" has 0 capture groups`},
		},
		"a goal": {
			func(m *sweep.Model) { m.Objective = &sweep.ObjectiveModel{Pattern: "(.*)", Goal: new("max")} },
			[]string{`objective.goal: unknown goal "max"`, "maximise", "minimise"},
		},
		"wait_for": {
			func(m *sweep.Model) { m.WaitFor = types.StringValue("ended") },
			[]string{`wait_for: unknown state to wait for "ended"`, "accepted", "completed"},
		},
		"rerun": {
			func(m *sweep.Model) { m.Rerun = types.StringValue("none") },
			[]string{`rerun: unknown rerun rule "none"`, "changed", "failed", "all"},
		},
		"then": {
			func(m *sweep.Model) { m.OnFailure = &sweep.OnFailureModel{After: 1, Then: new("end")} },
			[]string{`on_failure.then: unknown failure action "end"`, "stop", "drain"},
		},
		"a reserve": {
			func(m *sweep.Model) { m.Admission = &sweep.AdmissionModel{ReservePercent: types.Float64Value(100)} },
			[]string{"admission.reserve_percent: must be at least 0 and below 100, got 100"},
		},
		"a duration": {
			func(m *sweep.Model) { m.Retry = &sweep.RetryModel{Delay: types.StringValue("soon")} },
			[]string{`retry.delay: "soon" is not a valid duration`},
		},
		"a secret": {func(m *sweep.Model) {
			m.Image, m.Container = new("trainer:1"), &group.ContainerModel{
				Secrets: map[string]group.SecretFileModel{"s": {Value: types.StringValue("x"), Version: "1"}},
			}
		}, []string{"container.secrets: runs start after the apply"}},
		"a label that is none": {
			func(m *sweep.Model) { m.Placement = &group.PlacementModel{SpreadBy: new("rack=a")} },
			[]string{`placement.spread_by: "rack=a"`},
		},
		"a label without a name": {
			func(m *sweep.Model) { m.Placement = &group.PlacementModel{SpreadBy: new("")} },
			[]string{"placement.spread_by", "at least 1"},
		},
		"a template": {
			func(m *sweep.Model) { m.Command = []string{"train", "{{ .Env.RATE }}"} }, []string{"command[1]: ", "RATE"},
		},
		"no command": {func(m *sweep.Model) { m.Command = nil }, []string{"command"}},
		"free memory that is not declared": {
			func(m *sweep.Model) { m.Admission = &sweep.AdmissionModel{FreeMemory: new(true)} },
			[]string{"resources.memory_mib: ", "declare it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			message := strings.Join(tf.validate(theSweep,
				tftypes.NewValue(tf.schemas[theSweep].ValueType(), tf.sweep(test.change))), "\n")
			for _, part := range test.says {
				if !strings.Contains(message, part) {
					t.Errorf("it says %q, not %q", message, part)
				}
			}
		})
	}
}
