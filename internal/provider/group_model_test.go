package provider

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// noTimeouts is the value of timeouts that are not configured.
func noTimeouts(s schema.Schema) timeouts.Value {
	object, ok := s.Attributes["timeouts"].GetType().(attr.TypeWithAttributeTypes)
	if !ok {
		panic("timeouts are no object")
	}
	return timeouts.Value{Object: types.ObjectNull(object.AttributeTypes())}
}

// throughTerraform writes a group as Terraform keeps it, and reads it back.
func throughTerraform(t require, m groupModel) groupModel {
	ctx := context.Background()
	s := groupSchema(ctx, []string{"process", "swarm"})
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(ctx), nil)}
	if diags := state.Set(ctx, m); diags.HasError() {
		t.Fatalf("set: %v", diags)
	}
	var got groupModel
	if diags := state.Get(ctx, &got); diags.HasError() {
		t.Fatalf("get: %v", diags)
	}
	return got
}

// throughDocument writes a group as it is stored, and reads it back.
func throughDocument(t require, g domain.Group) domain.Group {
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	var got domain.Group
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	return got
}

// require is what *testing.T and *rapid.T have in common.
type require interface{ Fatalf(string, ...any) }

var spellings = []string{"60s", "1m", "1m0s", "0s", "1h30m", "90m"}

// optional draws nil or a pointer.
func optional[V any](g *rapid.Generator[V]) *rapid.Generator[*V] { return rapid.Ptr(g, true) }

// nilable draws nil, an empty list or a filled one.
func nilable[V any](g *rapid.Generator[V]) *rapid.Generator[[]V] {
	return rapid.OneOf(rapid.Just([]V(nil)), rapid.SliceOfN(g, 0, 3))
}

func nilableMap() *rapid.Generator[map[string]string] {
	return rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), rapid.String(), 0, 3))
}

// drawNumber draws null or a number from 0 to most.
func drawNumber(t *rapid.T, most float64, label string) types.Float64 {
	if drawn := optional(rapid.Float64Range(0, most)).Draw(t, label); drawn != nil {
		return inexact(*drawn)
	}
	return types.Float64Null()
}

func drawDuration(t *rapid.T) types.String {
	if rapid.Bool().Draw(t, "null") {
		return types.StringNull()
	}
	return types.StringValue(rapid.SampledFrom(spellings).Draw(t, "duration"))
}

func drawTemplate(t *rapid.T) templateModel {
	return templateModel{
		Image:      optional(rapid.SampledFrom([]string{"", "trainer:1"})).Draw(t, "image"),
		Command:    nilable(rapid.String()).Draw(t, "command"),
		Args:       nilable(rapid.String()).Draw(t, "args"),
		Env:        nilableMap().Draw(t, "env"),
		WorkingDir: optional(rapid.SampledFrom([]string{"", "/srv"})).Draw(t, "working_dir"),
		Mounts: nilable(rapid.Custom(func(t *rapid.T) mountModel {
			return mountModel{
				Type: optional(rapid.SampledFrom([]string{"", "tmpfs"})).Draw(t, "type"), Source: optional(rapid.SampledFrom([]string{"", "/a"})).Draw(t, "source"),
				Target: rapid.String().Draw(t, "target"), ReadOnly: optional(rapid.Bool()).Draw(t, "read_only"), SizeMiB: optional(rapid.Int64Range(0, 2)).Draw(t, "size"),
			}
		})).Draw(t, "mounts"),
		Container: optional(rapid.Custom(drawContainer)).Draw(t, "container"),
	}
}

func drawRole(t *rapid.T) roleModel {
	number := optional(rapid.Int64Range(0, 9))
	return roleModel{
		Replicas:      number.Draw(t, "replicas"),
		Port:          number.Draw(t, "port"),
		templateModel: drawTemplate(t),
		Resources: optional(rapid.Custom(func(t *rapid.T) resourcesModel {
			return resourcesModel{CPUs: drawNumber(t, 2, "cpus"), MemoryMiB: number.Draw(t, "memory"), Limits: optional(rapid.Custom(func(t *rapid.T) limitsModel {
				return limitsModel{CPUs: drawNumber(t, 2, "CPU limit"), MemoryMiB: number.Draw(t, "memory limit")}
			})).Draw(t, "limits")}
		})).Draw(t, "resources"),
		GPUs: optional(rapid.Custom(func(t *rapid.T) roleGPUsModel {
			return roleGPUsModel{Pool: rapid.String().Draw(t, "pool"), Count: number.Draw(t, "count"), MemoryMiB: number.Draw(t, "GPU memory")}
		})).Draw(t, "gpus"),
		Placement: optional(rapid.Custom(func(t *rapid.T) placementModel {
			return placementModel{Strategy: optional(rapid.SampledFrom([]string{"", "pack"})).Draw(t, "strategy"), Labels: nilableMap().Draw(t, "labels"), Hosts: nilable(rapid.String()).Draw(t, "hosts")}
		})).Draw(t, "placement"),
		Restart: optional(rapid.Custom(func(t *rapid.T) restartModel {
			return restartModel{Condition: optional(rapid.SampledFrom([]string{"", "always"})).Draw(t, "condition"), MaxAttempts: number.Draw(t, "attempts"), Delay: drawDuration(t)}
		})).Draw(t, "restart"),
		ExitCodes: optional(rapid.Custom(func(t *rapid.T) exitCodesModel {
			return exitCodesModel{Final: rapid.SliceOfN(rapid.SampledFrom([]string{"3", "1-127"}), 0, 2).Draw(t, "final")}
		})).Draw(t, "exit_codes"),
		GracePeriod: drawDuration(t),
		Update: optional(rapid.Custom(func(t *rapid.T) updateModel {
			return updateModel{Parallelism: number.Draw(t, "parallelism"), Delay: drawDuration(t), OnFailure: optional(rapid.SampledFrom([]string{"", "rollback"})).Draw(t, "on_failure")}
		})).Draw(t, "update"),
	}
}

func drawGroup(t *rapid.T, unset timeouts.Value) groupModel {
	triggers := types.MapNull(types.StringType)
	if drawn := nilableMap().Draw(t, "triggers"); drawn != nil {
		triggers = stringMap(drawn)
	}
	return groupModel{
		ID:            types.StringValue("lab/mnist"),
		Cluster:       clusterReference{Name: types.StringValue("lab"), Engine: types.StringValue(rapid.SampledFrom([]string{"process", "swarm"}).Draw(t, "engine")), Endpoint: textOrNull(rapid.SampledFrom([]string{"", "ssh://gpu1"}).Draw(t, "endpoint"))},
		Name:          types.StringValue("mnist"),
		Framework:     types.StringValue(rapid.SampledFrom([]string{"none", "mpi"}).Draw(t, "framework")),
		templateModel: drawTemplate(t),
		Roles:         rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), rapid.Custom(drawRole), 0, 3).Draw(t, "roles"),
		Completion: optional(rapid.Custom(func(t *rapid.T) completionModel {
			return completionModel{
				When:     optional(rapid.SampledFrom([]string{"", "all"})).Draw(t, "when"),
				Roles:    nilable(rapid.String()).Draw(t, "roles"),
				Deadline: drawDuration(t),
				StopRest: optional(rapid.Bool()).Draw(t, "stop_rest"),
			}
		})).Draw(t, "completion"),
		RestartScope: types.StringValue(rapid.SampledFrom([]string{"member", "group"}).Draw(t, "scope")),
		WaitFor:      types.StringValue(rapid.SampledFrom([]string{"running", "completed"}).Draw(t, "wait_for")),
		Triggers:     triggers,
		Members:      stringMap(map[string]string{"mnist-a-0": "127.0.0.1:1"}),
		Placements:   stringMap(map[string]string{"mnist-a-0": "local"}),
		ClusterSpec:  stringMap(map[string]string{"a": "127.0.0.1:1"}),
		Timeouts:     unset,
	}
}

// What a user writes, in whatever spelling, is read back in the same spelling after it was stored.
func TestGroupReadsAsItWasWritten(t *testing.T) {
	unset := noTimeouts(groupSchema(t.Context(), nil))
	rapid.Check(t, func(t *rapid.T) {
		written := throughTerraform(t, drawGroup(t, unset))
		var diags diag.Diagnostics
		stored := throughDocument(t, written.expand(&diags))
		if diags.HasError() {
			t.Fatalf("expand: %v", diags)
		}
		read := throughTerraform(t, flatten(stored, written))
		if diff := cmp.Diff(written, read, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Fatalf("read differs from what was written (-written +read):\n%s", diff)
		}
	})
}

// What is stored survives an import, which knows nothing of how it was written.
func TestGroupSurvivesImport(t *testing.T) {
	unset := noTimeouts(groupSchema(t.Context(), nil))
	rapid.Check(t, func(t *rapid.T) {
		var diags diag.Diagnostics
		stored := throughDocument(t, drawGroup(t, unset).expand(&diags))
		empty := groupModel{Triggers: types.MapNull(types.StringType), Members: stringMap(nil), Placements: stringMap(nil), ClusterSpec: stringMap(nil), Timeouts: unset}
		imported := throughTerraform(t, flatten(stored, empty))
		if again := imported.expand(&diags); !again.Equal(stored) {
			t.Fatalf("imported:\n%+v\nstored:\n%+v", again, stored)
		}
		if diags.HasError() {
			t.Fatalf("expand: %v", diags)
		}
	})
}

// A document that changed shows, whatever was written before.
func TestGroupShowsDrift(t *testing.T) {
	unset := noTimeouts(groupSchema(t.Context(), nil))
	rapid.Check(t, func(t *rapid.T) {
		var diags diag.Diagnostics
		written := drawGroup(t, unset)
		found := throughDocument(t, drawGroup(t, unset).expand(&diags))
		if again := flatten(found, written).expand(&diags); !again.Equal(found) {
			t.Fatalf("read:\n%+v\nfound:\n%+v", again, found)
		}
	})
}

func TestExpandFillsInDefaults(t *testing.T) {
	var diags diag.Diagnostics
	got := groupModel{Name: types.StringValue("g"), Triggers: types.MapUnknown(types.StringType)}.expand(&diags)
	want := domain.Group{Name: "g", Framework: "none", Roles: map[string]domain.Role{}, RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning}
	if !reflect.DeepEqual(got, want) || diags.HasError() {
		t.Errorf("got %+v, %v, want %+v", got, diags, want)
	}
}

// observedGroup returns a group of two workers and a number of observed members that are as desired.
func observedGroup(t *testing.T, applying bool) reconcile.Group {
	t.Helper()
	replicas, port := 2, 9000
	document := domain.GroupDocument{
		Header: domain.Header{Version: domain.DocumentVersion, Revision: 1}, MinRun: 1, Applying: applying,
		Spec: domain.Group{
			Cluster: "lab", Name: "g", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
			Template: domain.Template{Command: []string{"/bin/true"}},
			Roles:    map[string]domain.Role{"worker": {Replicas: &replicas, Port: &port}},
		},
		Counts: map[string]int{"worker": 2},
		Assignments: map[string]domain.Assignment{
			"g-worker-0": {Host: "local", Port: 9000},
			"g-worker-1": {Host: "local", Port: 9001},
		},
	}
	decision := reconcile.Current(engine.Traits{}, map[string]domain.Host{"local": {Address: "10.0.0.1"}}, document)
	group := reconcile.Group{Decision: decision}
	for i, m := range decision.Members {
		group.Observed = append(group.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
	return group
}

func TestFlattenGroup(t *testing.T) {
	both := map[string]string{"g-worker-0": "10.0.0.1:9000", "g-worker-1": "10.0.0.1:9001"}
	spec := map[string]string{"worker": "10.0.0.1:9000,10.0.0.1:9001"}
	for name, test := range map[string]struct {
		applying bool
		change   func(*reconcile.Group)
		replicas int64
		members  map[string]string
		spec     map[string]string
	}{
		"as desired": {
			replicas: 2, members: both, spec: spec,
		},
		"completed": {
			change:   func(g *reconcile.Group) { g.Observed[0].State = domain.StateCompleted },
			replicas: 2, members: both, spec: spec,
		},
		"a member is missing": {
			change:   func(g *reconcile.Group) { g.Observed = g.Observed[:1] },
			replicas: 1, members: map[string]string{"g-worker-0": "10.0.0.1:9000"}, spec: spec,
		},
		"a member runs something else": {
			change:   func(g *reconcile.Group) { g.Observed[1].Hash = "other" },
			replicas: 2, members: map[string]string{"g-worker-0": "10.0.0.1:9000"}, spec: spec,
		},
		"a member too many": {
			change: func(g *reconcile.Group) {
				g.Observed = append(g.Observed, domain.Observed{Name: "g-worker-2", Role: "worker", Host: "local", Address: "10.0.0.1:9002"})
			},
			replicas: 3, members: map[string]string{"g-worker-0": "10.0.0.1:9000", "g-worker-1": "10.0.0.1:9001", "g-worker-2": "10.0.0.1:9002"}, spec: spec,
		},
		"an apply died": {
			applying: true, replicas: 2, members: both, spec: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := observedGroup(t, test.applying)
			if test.change != nil {
				test.change(&group)
			}
			got := flattenGroup(group, groupModel{Triggers: types.MapNull(types.StringType)})
			if n := value(got.Roles["worker"].Replicas); n != test.replicas {
				t.Errorf("replicas: got %d, want %d", n, test.replicas)
			}
			if !got.Members.Equal(stringMap(test.members)) {
				t.Errorf("members: got %s, want %v", got.Members, test.members)
			}
			if !got.ClusterSpec.Equal(stringMap(test.spec)) {
				t.Errorf("cluster_spec: got %s, want %v", got.ClusterSpec, test.spec)
			}
			if len(got.Placements.Elements()) != len(test.members) {
				t.Errorf("placements: got %s, want the hosts of %v", got.Placements, test.members)
			}
			if got.ID.ValueString() != "lab/g" {
				t.Errorf("id: got %s", got.ID)
			}
		})
	}
}

// TestFlattenPool: members that the engine distributes have an address, which they share, and no host that would change by itself.
func TestFlattenPool(t *testing.T) {
	document := domain.GroupDocument{
		Header: domain.Header{Revision: 2}, MinRun: 1,
		Spec: domain.Group{
			Cluster: "lab", Name: "g", Framework: "spark", Template: domain.Template{Image: "spark"},
			Roles: map[string]domain.Role{"master": {Replicas: new(1)}, "worker": {Replicas: new(2)}},
		},
		Counts: map[string]int{"master": 1, "worker": 2},
		Assignments: map[string]domain.Assignment{
			"g-master-0": {Host: "gpu1", Port: 7077}, "g-worker-0": {Host: "gpu1", Port: 20000}, "g-worker-1": {Host: "gpu2", Port: 20000},
		},
	}
	traits := engine.Traits{Schedules: true, MemberAddress: func(member string) string { return member }}
	decision := reconcile.Current(traits, nil, document)
	group := reconcile.Group{Decision: decision}
	for i, m := range decision.Members {
		group.Observed = append(group.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: "gpu2", Address: m.Address, Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
	more := group.Observed[2]
	more.Name, more.Index = "g-worker-2", 2
	group.Observed = append(group.Observed, more)
	got := flattenGroup(group, groupModel{Triggers: types.MapNull(types.StringType)})
	if want := stringMap(map[string]string{"g-master-0": "gpu1"}); !got.Placements.Equal(want) {
		t.Errorf("placements: got %s, want %s", got.Placements, want)
	}
	if want := stringMap(map[string]string{
		"g-master-0": "g-master-0:7077", "g-worker-0": "g-worker:20000", "g-worker-1": "g-worker:20000", "g-worker-2": "g-worker:20000",
	}); !got.Members.Equal(want) {
		t.Errorf("members: got %s, want %s", got.Members, want)
	}
	if n := value(got.Roles["worker"].Replicas); n != 3 {
		t.Errorf("replicas: got %d, want 3", n)
	}
	// Where they will be does not keep a plan from knowing the rest.
	view := reconcile.View{Traits: traits, Inventory: engine.Inventory{Hosts: map[string]domain.Host{"gpu1": {}, "gpu2": {}}}, Groups: map[string]domain.GroupDocument{"g": document}}
	grown := document
	grown.Counts = map[string]int{"master": 1, "worker": 5}
	if known := certainty(view, reconcile.Current(traits, nil, grown)); !known.addresses || !maps.Equal(known.places, map[string]string{"g-master-0": "gpu1"}) {
		t.Errorf("known of a pool that grows: %+v", known)
	}
}

func TestUnmanagedReplicasStayNull(t *testing.T) {
	group := observedGroup(t, false)
	role := group.Document.Spec.Roles["worker"]
	role.Replicas = nil
	group.Document.Spec.Roles["worker"] = role
	got := flattenGroup(group, groupModel{Triggers: types.MapNull(types.StringType)})
	if got.Roles["worker"].Replicas != nil {
		t.Errorf("got %d, want null", *got.Roles["worker"].Replicas)
	}
}

func TestFlattenKeepsSpellingOfDurations(t *testing.T) {
	hour := domain.Duration(time.Hour)
	spec := domain.Group{Roles: map[string]domain.Role{"a": {GracePeriod: &hour}}}
	prior := groupModel{Roles: map[string]roleModel{"a": {GracePeriod: types.StringValue("60m")}}, Triggers: types.MapNull(types.StringType)}
	if got := flatten(spec, prior).Roles["a"].GracePeriod.ValueString(); got != "60m" {
		t.Errorf("got %s, want 60m", got)
	}
}

// TestExpandNamesWhatIsWrong: an error leads to the attribute.
func TestExpandNamesWhatIsWrong(t *testing.T) {
	var diags diag.Diagnostics
	groupModel{Roles: map[string]roleModel{"worker": {Restart: &restartModel{Delay: types.StringValue("soon")}}}}.expand(&diags)
	if want := `roles["worker"].restart.delay: time: invalid duration "soon"`; len(diags) != 1 || diags[0].Detail() != want {
		t.Errorf("got %v, want %s", diags, want)
	}
}
