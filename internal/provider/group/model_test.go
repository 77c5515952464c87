package group

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// throughTerraform writes a group to a Terraform state, and reads it back.
func throughTerraform(t providertest.Require, m Model) Model {
	ctx := context.Background()
	s := Schema(ctx, []string{"process", "swarm"})
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(ctx), nil)}
	if diags := state.Set(ctx, m); diags.HasError() {
		t.Fatalf("set: %v", diags)
	}
	var got Model
	if diags := state.Get(ctx, &got); diags.HasError() {
		t.Fatalf("get: %v", diags)
	}
	return got
}

// throughDocument encodes a group as a document, and decodes it.
func throughDocument(t providertest.Require, g domain.Group) domain.Group {
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

func drawTemplate(t *rapid.T) TemplateModel {
	return TemplateModel{
		Image:      providertest.Optional(rapid.SampledFrom([]string{"", "trainer:1"})).Draw(t, "image"),
		Command:    providertest.Nilable(rapid.String()).Draw(t, "command"),
		Args:       providertest.Nilable(rapid.String()).Draw(t, "args"),
		Env:        providertest.NilableMap().Draw(t, "env"),
		WorkingDir: providertest.Optional(rapid.SampledFrom([]string{"", "/srv"})).Draw(t, "working_dir"),
		Mounts: providertest.Nilable(rapid.Custom(func(t *rapid.T) MountModel {
			return MountModel{
				Type:     providertest.Optional(rapid.SampledFrom([]string{"", "tmpfs"})).Draw(t, "type"),
				Source:   providertest.Optional(rapid.SampledFrom([]string{"", "/a"})).Draw(t, "source"),
				Target:   rapid.String().Draw(t, "target"),
				ReadOnly: providertest.Optional(rapid.Bool()).Draw(t, "read_only"),
				SizeMiB:  providertest.Optional(rapid.Int64Range(0, 2)).Draw(t, "size"),
				Driver: providertest.Optional(rapid.Custom(func(t *rapid.T) VolumeDriverModel {
					return VolumeDriverModel{
						Name: rapid.String().Draw(t, "driver"), Options: providertest.NilableMap().Draw(t, "options"),
					}
				})).Draw(t, "driver"),
			}
		})).Draw(t, "mounts"),
		Container: providertest.Optional(rapid.Custom(drawContainer)).Draw(t, "container"),
	}
}

func drawRole(t *rapid.T) RoleModel {
	number := providertest.Optional(rapid.Int64Range(0, 9))
	return RoleModel{
		Replicas:      number.Draw(t, "replicas"),
		Port:          number.Draw(t, "port"),
		TemplateModel: drawTemplate(t),
		Resources: providertest.Optional(rapid.Custom(func(t *rapid.T) ResourcesModel {
			return ResourcesModel{CPUs: providertest.DrawNumber(t, 2, "cpus"), MemoryMiB: number.Draw(t, "memory"),
				Limits: providertest.Optional(rapid.Custom(func(t *rapid.T) LimitsModel {
					return LimitsModel{
						CPUs: providertest.DrawNumber(t, 2, "CPU limit"), MemoryMiB: number.Draw(t, "memory limit"),
					}
				})).Draw(t, "limits")}
		})).Draw(t, "resources"),
		GPUs: providertest.Optional(rapid.Custom(func(t *rapid.T) RoleGPUsModel {
			return RoleGPUsModel{
				Pool: rapid.String().Draw(t, "pool"), Count: number.Draw(t, "count"),
				MemoryMiB: number.Draw(t, "GPU memory"),
			}
		})).Draw(t, "gpus"),
		Placement: providertest.Optional(rapid.Custom(func(t *rapid.T) PlacementModel {
			return PlacementModel{
				Strategy: providertest.Optional(rapid.SampledFrom([]string{"", "pack"})).Draw(t, "strategy"),
				SpreadBy: providertest.Optional(rapid.SampledFrom([]string{"", "rack"})).Draw(t, "spread_by"),
				Labels:   providertest.NilableMap().Draw(t, "labels"),
				Hosts:    providertest.Nilable(rapid.String()).Draw(t, "hosts"),
			}
		})).Draw(t, "placement"),
		Restart: providertest.Optional(rapid.Custom(func(t *rapid.T) RestartModel {
			return RestartModel{
				Condition:   providertest.Optional(rapid.SampledFrom([]string{"", "always"})).Draw(t, "condition"),
				MaxAttempts: number.Draw(t, "attempts"), Delay: providertest.DrawDuration(t),
			}
		})).Draw(t, "restart"),
		ExitCodes: providertest.Optional(rapid.Custom(func(t *rapid.T) ExitCodesModel {
			return ExitCodesModel{
				Final: rapid.SliceOfN(rapid.SampledFrom([]string{"3", "1-127"}), 0, 2).Draw(t, "final"),
			}
		})).Draw(t, "exit_codes"),
		GracePeriod: providertest.DrawDuration(t),
		Update: providertest.Optional(rapid.Custom(func(t *rapid.T) UpdateModel {
			return UpdateModel{
				Parallelism: number.Draw(t, "parallelism"), Delay: providertest.DrawDuration(t),
				OnFailure: providertest.Optional(rapid.SampledFrom([]string{"", "rollback"})).Draw(t, "on_failure"),
			}
		})).Draw(t, "update"),
	}
}

func drawGroup(t *rapid.T, unset timeouts.Value) Model {
	triggers := types.MapNull(types.StringType)
	if drawn := providertest.NilableMap().Draw(t, "triggers"); drawn != nil {
		triggers = resourcekit.StringMap(drawn)
	}
	return Model{
		ID: types.StringValue("lab/mnist"),
		Cluster: resourcekit.ClusterReference{
			Name:     types.StringValue("lab"),
			Engine:   types.StringValue(rapid.SampledFrom([]string{"process", "swarm"}).Draw(t, "engine")),
			Endpoint: resourcekit.TextOrNull(rapid.SampledFrom([]string{"", "ssh://gpu1"}).Draw(t, "endpoint")),
		},
		Name:          types.StringValue("mnist"),
		Framework:     types.StringValue(rapid.SampledFrom([]string{"none", "mpi"}).Draw(t, "framework")),
		TemplateModel: drawTemplate(t),
		Roles:         rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), rapid.Custom(drawRole), 0, 3).Draw(t, "roles"),
		Completion: providertest.Optional(rapid.Custom(func(t *rapid.T) CompletionModel {
			return CompletionModel{
				When:     providertest.Optional(rapid.SampledFrom([]string{"", "all"})).Draw(t, "when"),
				Roles:    providertest.Nilable(rapid.String()).Draw(t, "roles"),
				Deadline: providertest.DrawDuration(t),
				StopRest: providertest.Optional(rapid.Bool()).Draw(t, "stop_rest"),
			}
		})).Draw(t, "completion"),
		RestartScope: types.StringValue(rapid.SampledFrom([]string{"member", "group"}).Draw(t, "scope")),
		WaitFor:      types.StringValue(rapid.SampledFrom([]string{"running", "completed"}).Draw(t, "wait_for")),
		Triggers:     triggers,
		Members:      resourcekit.StringMap(map[string]string{"mnist-a-0": "127.0.0.1:1"}),
		Placements:   resourcekit.StringMap(map[string]string{"mnist-a-0": "local"}),
		ClusterSpec:  resourcekit.StringMap(map[string]string{"a": "127.0.0.1:1"}),
		Timeouts:     unset,
	}
}

// Any spelling of a configuration is the same after it was stored and read back.
func TestGroupReadsAsItWasWritten(t *testing.T) {
	unset := providertest.NoTimeouts(Schema(t.Context(), nil))
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

// A stored group survives an import, which does not know the original spelling.
func TestGroupSurvivesImport(t *testing.T) {
	unset := providertest.NoTimeouts(Schema(t.Context(), nil))
	rapid.Check(t, func(t *rapid.T) {
		var diags diag.Diagnostics
		stored := throughDocument(t, drawGroup(t, unset).expand(&diags))
		empty := Model{
			Triggers: types.MapNull(types.StringType), Members: resourcekit.StringMap(nil),
			Placements: resourcekit.StringMap(nil), ClusterSpec: resourcekit.StringMap(nil), Timeouts: unset,
		}
		imported := throughTerraform(t, flatten(stored, empty))
		if again := imported.expand(&diags); !again.Equal(stored) {
			t.Fatalf("imported:\n%+v\nstored:\n%+v", again, stored)
		}
		if diags.HasError() {
			t.Fatalf("expand: %v", diags)
		}
	})
}

// Changes of the document show, whatever was written before.
func TestGroupShowsDrift(t *testing.T) {
	unset := providertest.NoTimeouts(Schema(t.Context(), nil))
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
	got := Model{Name: types.StringValue("g"), Triggers: types.MapUnknown(types.StringType)}.expand(&diags)
	want := domain.Group{
		Name: "g", Framework: "none", Roles: map[string]domain.Role{}, RestartScope: domain.ScopeMember,
		WaitFor: domain.WaitRunning,
	}
	if !reflect.DeepEqual(got, want) || diags.HasError() {
		t.Errorf("got %+v, %v, want %+v", got, diags, want)
	}
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
				g.Observed = append(g.Observed,
					domain.Observed{Name: "g-worker-2", Role: "worker", Host: "local", Address: "10.0.0.1:9002"})
			},
			replicas: 3, members: map[string]string{
				"g-worker-0": "10.0.0.1:9000", "g-worker-1": "10.0.0.1:9001", "g-worker-2": "10.0.0.1:9002",
			}, spec: spec,
		},
		"an apply died": {
			applying: true, replicas: 2, members: both, spec: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := providertest.ObservedGroup(t, test.applying)
			if test.change != nil {
				test.change(&group)
			}
			got := FlattenGroup(group, Model{Triggers: types.MapNull(types.StringType)})
			if n := resourcekit.Value(got.Roles["worker"].Replicas); n != test.replicas {
				t.Errorf("replicas: got %d, want %d", n, test.replicas)
			}
			if !got.Members.Equal(resourcekit.StringMap(test.members)) {
				t.Errorf("members: got %s, want %v", got.Members, test.members)
			}
			if !got.ClusterSpec.Equal(resourcekit.StringMap(test.spec)) {
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

// TestFlattenPool: members that the engine schedules show the address that they share, and no host, as
// that would change by itself.
func TestFlattenPool(t *testing.T) {
	document := domain.GroupDocument{
		Header: domain.Header{Revision: 2}, MinRun: 1,
		Spec: domain.Group{
			Cluster: "lab", Name: "g", Framework: "spark", Template: domain.Template{Image: "spark"},
			Roles: map[string]domain.Role{"master": {Replicas: new(1)}, "worker": {Replicas: new(2)}},
		},
		Counts: map[string]int{"master": 1, "worker": 2},
		Assignments: map[string]domain.Assignment{
			"g-master-0": {Host: "gpu1", Port: 7077}, "g-worker-0": {Host: "gpu1", Port: 20000},
			"g-worker-1": {Host: "gpu2", Port: 20000},
		},
	}
	traits := engine.Traits{Schedules: true, MemberAddress: func(member string) string { return member }}
	decision := reconcile.Current(traits, nil, document)
	group := reconcile.Group{Decision: decision}
	for i, m := range decision.Members {
		group.Observed = append(group.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: "gpu2", Address: m.Address,
			Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
	more := group.Observed[2]
	more.Name, more.Index = "g-worker-2", 2
	group.Observed = append(group.Observed, more)
	got := FlattenGroup(group, Model{Triggers: types.MapNull(types.StringType)})
	if want := resourcekit.StringMap(map[string]string{"g-master-0": "gpu1"}); !got.Placements.Equal(want) {
		t.Errorf("placements: got %s, want %s", got.Placements, want)
	}
	if want := resourcekit.StringMap(map[string]string{
		"g-master-0": "g-master-0:7077", "g-worker-0": "g-worker:20000", "g-worker-1": "g-worker:20000",
		"g-worker-2": "g-worker:20000",
	}); !got.Members.Equal(want) {
		t.Errorf("members: got %s, want %s", got.Members, want)
	}
	if n := resourcekit.Value(got.Roles["worker"].Replicas); n != 3 {
		t.Errorf("replicas: got %d, want 3", n)
	}
	// The rest is known at plan, though their hosts are not.
	view := reconcile.View{
		Traits: traits, Inventory: engine.Inventory{Hosts: map[string]domain.Host{"gpu1": {}, "gpu2": {}}},
		Groups: map[string]domain.GroupDocument{"g": document},
	}
	grown := document
	grown.Counts = map[string]int{"master": 1, "worker": 5}
	if known := certainty(view, reconcile.Current(traits, nil, grown)); !known.addresses ||
		!maps.Equal(known.places, map[string]string{"g-master-0": "gpu1"}) {
		t.Errorf("known of a pool that grows: %+v", known)
	}
}

func TestUnmanagedReplicasStayNull(t *testing.T) {
	group := providertest.ObservedGroup(t, false)
	role := group.Document.Spec.Roles["worker"]
	role.Replicas = nil
	group.Document.Spec.Roles["worker"] = role
	got := FlattenGroup(group, Model{Triggers: types.MapNull(types.StringType)})
	if got.Roles["worker"].Replicas != nil {
		t.Errorf("got %d, want null", *got.Roles["worker"].Replicas)
	}
}

func TestFlattenKeepsSpellingOfDurations(t *testing.T) {
	hour := domain.Duration(time.Hour)
	spec := domain.Group{Roles: map[string]domain.Role{"a": {GracePeriod: &hour}}}
	prior := Model{
		Roles:    map[string]RoleModel{"a": {GracePeriod: types.StringValue("60m")}},
		Triggers: types.MapNull(types.StringType),
	}
	if got := flatten(spec, prior).Roles["a"].GracePeriod.ValueString(); got != "60m" {
		t.Errorf("got %s, want 60m", got)
	}
}

// TestEmptyListsOfRoles: a role's empty list overrides the group's. Where the group has none, it means the same as none
// and is not stored, so that documents are the same whichever was written.
func TestEmptyListsOfRoles(t *testing.T) {
	empty := TemplateModel{Command: []string{}, Args: []string{}, Mounts: []MountModel{}}
	full := TemplateModel{
		Image: new("trainer:1"), Command: []string{"train"}, Args: []string{"-v"}, Mounts: []MountModel{{Target: "/a"}},
	}
	for name, test := range map[string]struct {
		group, role TemplateModel
		stored      domain.Template
	}{
		"of a group and its role": {empty, empty, domain.Template{}},
		"over nothing":            {TemplateModel{}, empty, domain.Template{}},
		"over lists": {
			full, empty, domain.Template{Command: []string{}, Mounts: []domain.Mount{}}, // its command drops the args
		},
		"args over args": {full, TemplateModel{Args: []string{}}, domain.Template{Args: []string{}}},
		"args that a command drops": {
			full, TemplateModel{Command: []string{"ps"}, Args: []string{}}, domain.Template{Command: []string{"ps"}},
		},
		"none, over lists": {full, TemplateModel{}, domain.Template{}},
	} {
		prior := Model{
			TemplateModel: test.group, Roles: map[string]RoleModel{"ps": {TemplateModel: test.role}},
			Triggers: types.MapNull(types.StringType),
		}
		spec := prior.expand(&diag.Diagnostics{})
		stored := throughDocument(t, spec)
		if diff := cmp.Diff(test.stored, stored.Roles["ps"].Template); diff != "" {
			t.Errorf("%s: stored (-want +got):\n%s", name, diff)
		}
		if got := flatten(stored, prior); !reflect.DeepEqual(got.Roles, prior.Roles) ||
			!reflect.DeepEqual(got.TemplateModel, prior.TemplateModel) {
			t.Errorf("%s: read as %+v, want %+v", name, got, prior)
		}
		// A document that lacks an empty list which overrides the group's shows that the role inherits.
		inherits := domain.Group{Template: stored.Template, Roles: map[string]domain.Role{"ps": {}}}
		got := flatten(inherits, prior).expand(&diag.Diagnostics{}).Roles["ps"]
		if !reflect.DeepEqual(got, domain.Role{}) {
			t.Errorf("%s: inheriting is read as %+v", name, got.Template)
		}
	}
}

// TestExpandNamesWhatIsWrong: an error names the attribute.
func TestExpandNamesWhatIsWrong(t *testing.T) {
	var diags diag.Diagnostics
	Model{
		Roles: map[string]RoleModel{"worker": {Restart: &RestartModel{Delay: types.StringValue("soon")}}},
	}.expand(&diags)
	if want := `roles["worker"].restart.delay: time: invalid duration "soon"`; len(diags) != 1 ||
		diags[0].Detail() != want {
		t.Errorf("got %v, want %s", diags, want)
	}
}
