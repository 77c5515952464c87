package sweep

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
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
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// throughTerraform writes a sweep to a Terraform state, and reads it back.
func throughTerraform(t providertest.Require, m Model) Model {
	ctx := context.Background()
	s := Schema(ctx, []string{"process", "swarm"})
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(ctx), nil)}
	var got Model
	if diags := append(state.Set(ctx, m), state.Get(ctx, &got)...); diags.HasError() {
		t.Fatalf("%v", diags)
	}
	return got
}

// throughStore stores a sweep as a document and chunks, and reads it back.
func throughStore(t providertest.Require, s domain.Sweep) domain.Sweep {
	bare, split, err := sweep.Split(s)
	if err != nil {
		t.Fatalf("split: %v", err)
	}
	doc, chunks := domain.SweepDocument{Spec: bare, Count: len(s.Runs)}, map[string]domain.SweepRuns{}
	for _, chunk := range split {
		doc.Chunks = append(doc.Chunks, chunk.Name)
		chunks[chunk.Key()] = reread(t, chunk)
	}
	stored, missing := sweep.Join(reread(t, doc), chunks)
	if len(missing) > 0 {
		t.Fatalf("chunks %q are missing", missing)
	}
	return stored
}

func reread[T any](t providertest.Require, document T) (again T) {
	text, err := json.Marshal(document)
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return again
}

func drawSweep(t *rapid.T, unset timeouts.Value) Model {
	number := providertest.Optional(rapid.Int64Range(0, 9))
	flag := providertest.Optional(rapid.Bool())
	word := func(words ...string) *rapid.Generator[*string] {
		return providertest.Optional(rapid.SampledFrom(append(words, "")))
	}
	triggers := types.MapNull(types.StringType)
	if drawn := providertest.NilableMap().Draw(t, "triggers"); drawn != nil {
		triggers = resourcekit.StringMap(drawn)
	}
	runs := rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"),
		rapid.MapOfN(rapid.StringMatching("[A-Z]{1,3}"), rapid.String(), 0, 3), 1, 5).Draw(t, "runs")
	var config map[string]string
	if rapid.Bool().Draw(t, "config") {
		config = rapid.MapOf(rapid.SampledFrom(slices.Sorted(maps.Keys(runs))), rapid.StringN(1, 9, -1)).Draw(t,
			"files")
	}
	return Model{
		ID: types.StringValue("lab/lr"),
		Cluster: resourcekit.ClusterReference{
			Name:     types.StringValue("lab"),
			Engine:   types.StringValue(rapid.SampledFrom([]string{"process", "swarm"}).Draw(t, "engine")),
			Endpoint: resourcekit.TextOrNull(rapid.SampledFrom([]string{"", "ssh://gpu1"}).Draw(t, "endpoint")),
		},
		Name: types.StringValue("lr"),
		TemplateModel: group.TemplateModel{
			Image: word("trainer:1").Draw(t, "image"), Command: providertest.Nilable(rapid.String()).Draw(t, "command"),
			Env: providertest.NilableMap().Draw(t, "env"),
			Container: providertest.Optional(rapid.Custom(func(t *rapid.T) group.ContainerModel {
				return group.ContainerModel{User: word("1000").Draw(t, "user"), ShmSizeMiB: number.Draw(t, "shm")}
			})).Draw(t, "container"),
		},
		Runs:        packed.Of(runs),
		Config:      packed.Of(config),
		MaxParallel: number.Draw(t, "max_parallel"),
		Priority:    providertest.Optional(rapid.Int64Range(-2, 2)).Draw(t, "priority"),
		Resources: providertest.Optional(rapid.Custom(func(t *rapid.T) group.ResourcesModel {
			return group.ResourcesModel{
				CPUs: providertest.DrawNumber(t, 2, "cpus"), MemoryMiB: number.Draw(t, "memory"),
			}
		})).Draw(t, "resources"),
		GPUs: providertest.Optional(rapid.Custom(func(t *rapid.T) group.RoleGPUsModel {
			return group.RoleGPUsModel{
				Pool: rapid.String().Draw(t, "pool"), Count: number.Draw(t, "count"),
				MemoryMiB: number.Draw(t, "GPU memory"),
			}
		})).Draw(t, "gpus"),
		Placement: providertest.Optional(rapid.Custom(func(t *rapid.T) group.PlacementModel {
			return group.PlacementModel{
				Strategy: word("pack").Draw(t, "strategy"), SpreadBy: word("rack").Draw(t, "spread_by"),
				Labels: providertest.NilableMap().Draw(t, "labels"),
				Hosts:  providertest.Nilable(rapid.String()).Draw(t, "hosts"),
			}
		})).Draw(t, "placement"),
		GracePeriod: providertest.DrawDuration(t),
		ExitCodes: providertest.Optional(rapid.Custom(func(t *rapid.T) group.ExitCodesModel {
			return group.ExitCodesModel{
				Final: rapid.SliceOfN(rapid.SampledFrom([]string{"3", "1-127"}), 0, 2).Draw(t, "final"),
			}
		})).Draw(t, "exit_codes"),
		Admission: providertest.Optional(rapid.Custom(func(t *rapid.T) AdmissionModel {
			return AdmissionModel{
				FreeGPUMemory: flag.Draw(t, "free_gpu_memory"), FreeMemory: flag.Draw(t, "free_memory"),
				ReservePercent: providertest.DrawNumber(t, 99, "reserve"), Settle: providertest.DrawDuration(t),
			}
		})).Draw(t, "admission"),
		Retry: providertest.Optional(rapid.Custom(func(t *rapid.T) RetryModel {
			return RetryModel{
				MaxAttempts: number.Draw(t, "attempts"), OutOfMemory: number.Draw(t, "out_of_memory"),
				Patterns: providertest.Nilable(rapid.String()).Draw(t, "patterns"), Delay: providertest.DrawDuration(t),
			}
		})).Draw(t, "retry"),
		OnFailure: providertest.Optional(rapid.Custom(func(t *rapid.T) OnFailureModel {
			return OnFailureModel{
				After: rapid.Int64Range(1, 9).Draw(t, "after"), Then: word("stop", "drain").Draw(t, "then"),
			}
		})).Draw(t, "on_failure"),
		Results: providertest.Optional(rapid.Custom(func(t *rapid.T) ResultsModel {
			return ResultsModel{
				Path: rapid.String().Draw(t, "path"), OnDestroy: word("delete").Draw(t, "on_destroy"),
				CollectTo: word("results").Draw(t, "collect_to"),
			}
		})).Draw(t, "results"),
		Objective: providertest.Optional(rapid.Custom(func(t *rapid.T) ObjectiveModel {
			return ObjectiveModel{Pattern: rapid.String().Draw(t, "pattern"), Goal: word("minimise").Draw(t, "goal")}
		})).Draw(t, "objective"),
		Progress: providertest.Optional(rapid.Custom(func(t *rapid.T) ProgressModel {
			return ProgressModel{
				Pattern: rapid.String().Draw(t, "pattern"), Threshold: providertest.DrawNumber(t, 1, "threshold"),
				Settle: providertest.DrawDuration(t),
			}
		})).Draw(t, "progress"),
		WaitFor:  types.StringValue(rapid.SampledFrom([]string{"accepted", "completed"}).Draw(t, "wait_for")),
		Rerun:    types.StringValue(rapid.SampledFrom([]string{"changed", "failed", "all"}).Draw(t, "rerun")),
		Triggers: triggers,
		Timeouts: unset,
	}
}

// Any spelling of a configuration is the same after it was stored and read back.
func TestSweepReadsAsItWasWritten(t *testing.T) {
	unset := providertest.NoTimeouts(Schema(t.Context(), nil))
	rapid.Check(t, func(t *rapid.T) {
		written := throughTerraform(t, drawSweep(t, unset))
		var diags diag.Diagnostics
		spec := written.expand(&diags)
		stored := throughStore(t, spec)
		if diags.HasError() || !stored.Equal(spec) {
			t.Fatalf("stored:\n%+v\nspecified:\n%+v\n%v", stored, spec, diags)
		}
		read := throughTerraform(t, flatten(stored, written))
		if diff := cmp.Diff(written, read, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Fatalf("read differs from what was written (-written +read):\n%s", diff)
		}
	})
}

// A stored sweep survives an import, which does not know the original spelling, and shows whatever was written before.
func TestSweepShowsWhatIsStored(t *testing.T) {
	unset := providertest.NoTimeouts(Schema(t.Context(), nil))
	rapid.Check(t, func(t *rapid.T) {
		var diags diag.Diagnostics
		stored := throughStore(t, drawSweep(t, unset).expand(&diags))
		for what, prior := range map[string]Model{
			"import": {Triggers: types.MapNull(types.StringType), Timeouts: unset}, "drift": drawSweep(t, unset),
		} {
			if again := throughTerraform(t, flatten(stored, prior)).expand(&diags); !again.Equal(stored) {
				t.Fatalf("%s:\n%+v\nstored:\n%+v", what, again, stored)
			}
		}
		if diags.HasError() {
			t.Fatalf("expand: %v", diags)
		}
	})
}

func TestExpandFillsInDefaults(t *testing.T) {
	var diags diag.Diagnostics
	runs := map[string]map[string]string{"a": {"LR": "0.1"}}
	m := Model{
		Name: types.StringValue("lr"), Runs: packed.Of(runs), Triggers: types.MapUnknown(types.StringType),
		Admission: &AdmissionModel{Settle: types.StringValue("20s")}, OnFailure: &OnFailureModel{After: 5},
	}
	want := domain.Sweep{
		Name: "lr", Runs: runs, WaitFor: domain.WaitAccepted, Rerun: domain.RerunChanged,
		Admission: domain.Admission{Settle: new(domain.Duration(20 * time.Second))},
		OnFailure: &domain.SweepOnFailure{After: 5},
	}
	if diff := cmp.Diff(want, m.expand(&diags)); diff != "" || diags.HasError() {
		t.Errorf("%v (-want +got)\n%s", diags, diff)
	}
}

// An apply that waits for the end of all runs has a longer timeout.
func TestPutTimeout(t *testing.T) {
	for waitFor, want := range map[string]time.Duration{
		"accepted": defaultTimeout, "completed": defaultCompletionTimeout,
	} {
		if got := putTimeout(Model{WaitFor: types.StringValue(waitFor)}); got != want {
			t.Errorf("%s: got %s, want %s", waitFor, got, want)
		}
	}
}
