package policy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy/policytest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// policyModels lets cmp compare models of policies.
var policyModels = cmp.AllowUnexported(policy.Model{}, policy.MeasuredMetricModel{}, timeouts.Value{}, types.Object{})

// The model has all attributes of the schema, and a policy reads back as declared, in its spelling. An
// imported one means the same.
func TestAutoscalingPolicyModel(t *testing.T) {
	empty := policytest.Small()
	empty.Metrics = map[string]policy.MeasuredMetricModel{}
	empty.Schedules = map[string]policy.ScalingScheduleModel{}
	empty.ScaleOut, empty.ScaleIn = &policy.ScalingBehaviourModel{}, &policy.ScalingBehaviourModel{}
	empty.Guards = &policy.ScalingGuardsModel{}
	alone := policytest.Small() // a model that observes nothing
	alone.Metrics["used"].Algorithm.Target, alone.Metrics["used"].Algorithm.Learned = nil, &policy.LearnedModel{
		Model: types.StringValue(qmodeltest.Text(qmodeltest.Band(0.2, 0.8))), Observes: types.MapNull(types.StringType),
	}
	for name, m := range map[string]policy.Model{
		"full": policytest.Full(), "small": policytest.Small(), "empty": empty, "alone": alone,
	} {
		s := policy.Schema(t.Context(), nil)
		state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), nil)}
		var kept policy.Model
		if diags := append(state.Set(t.Context(), m), state.Get(t.Context(), &kept)...); diags.HasError() {
			t.Fatalf("%s: %v", name, diags)
		}
		if diff := cmp.Diff(m, kept, policyModels); diff != "" {
			t.Errorf("%s: what was set is read as (-set +got)\n%s", name, diff)
		}
		var diags diag.Diagnostics
		spec := m.Expand(&diags)
		if diff := cmp.Diff(m, policy.Flatten(spec, m), policyModels); diff != "" {
			t.Errorf("%s: what was declared is read back as (-want +got)\n%s", name, diff)
		}
		imported := policy.Flatten(spec, policy.Model{
			Cluster: m.Cluster, Timeouts: providertest.NoTimeouts(policy.Schema(context.Background(), nil)),
		})
		if again := imported.Expand(&diags); !again.Equal(spec) || diags.HasError() {
			t.Errorf("%s: what is imported says %+v, want %+v; %v", name, again, spec, diags)
		}
		if diags := state.Set(t.Context(), imported); diags.HasError() {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func TestExpandAutoscalingPolicy(t *testing.T) {
	lasts := func(d time.Duration) *domain.Duration { return new(domain.Duration(d)) }
	algorithm := func(a domain.ScalingAlgorithm, source domain.ScalingSource) domain.ScalingMetric {
		return domain.ScalingMetric{Algorithm: a, Source: source}
	}
	hook := domain.ScalingHook{Command: []string{"drain", "-v"}, Timeout: lasts(90 * time.Second)}
	used := algorithm(domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 60, Per: domain.TargetMean}},
		domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUPercent, Of: domain.AgentMember}})
	used.Window, used.Aggregation, used.StaleAfter, used.OnMissing, used.MissingValue = lasts(time.Minute),
		domain.AggregateP95, lasts(time.Minute), domain.MissingAsValue, new(0.0)
	used.ReadyAfter = lasts(90 * time.Second)
	used.Forecast = &domain.Forecast{Season: lasts(24 * time.Hour)}
	want := domain.AutoscalingPolicy{
		Cluster: "lab", Group: "spark", Role: "worker", Max: 9, Initial: new(0), Interval: lasts(time.Minute),
		Metrics: map[string]domain.ScalingMetric{
			"used": used,
			"heat": algorithm(domain.ScalingAlgorithm{
				Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 80, Target: 50, Recurrence: 5},
			}, domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: "http://prometheus:9090", Query: "up"}}),
			"hits": algorithm(
				domain.ScalingAlgorithm{Threshold: &domain.ThresholdAlgorithm{
					Lower: new(0.0), Upper: new(80.0), Samples: 2, StepOut: 3, StepInPercent: 10,
				}},
				domain.ScalingSource{
					Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: "http://front", Path: "queue.length"}},
				},
			),
			"jobs": algorithm(
				domain.ScalingAlgorithm{
					Queue: &domain.QueueAlgorithm{PerMember: 100, CoolDown: lasts(90 * time.Second)},
				},
				domain.ScalingSource{
					Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: "redis:6379", Key: "jobs"}},
				},
			),
			"files": algorithm(domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1}},
				domain.ScalingSource{Queue: &domain.QueueSource{Command: []string{"count", "files"}}}),
			"steps": algorithm(
				domain.ScalingAlgorithm{MarginalGain: &domain.MarginalGainAlgorithm{
					Threshold: 0.1, Settle: lasts(2 * time.Minute), RetryAfter: lasts(time.Hour),
				}},
				domain.ScalingSource{Progress: &domain.ProgressSource{
					Pattern: `step (?P<step>\d+)`, Role: "worker", Combine: domain.CombineMax,
				}},
			),
			"promised": algorithm(
				domain.ScalingAlgorithm{
					Risk: &domain.RiskAlgorithm{Percent: 0.5, Capacity: 20, Per: domain.TargetTotal},
				},
				domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: "http://prometheus:9090", Query: "up"}},
			),
			"trained": algorithm(
				domain.ScalingAlgorithm{Learned: &domain.LearnedAlgorithm{
					Model: domain.NewLearnedModel(qmodeltest.Text(policytest.TrainedModel())), Capacity: 500,
					Per: domain.TargetTotal, LatencyBound: 0.25, Observes: map[string]string{"cpu": "seen"},
				}},
				domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: "http://prometheus:9090", Query: "up"}}),
			"servers": algorithm(domain.ScalingAlgorithm{Ratio: &domain.RatioAlgorithm{Role: "ps", Per: 4}},
				domain.ScalingSource{}),
			"filled": algorithm(domain.ScalingAlgorithm{IdleRoom: &domain.IdleRoomAlgorithm{KeepFree: 2}},
				domain.ScalingSource{}),
			"seen": {Source: domain.ScalingSource{
				Agent: &domain.AgentSource{Measure: domain.AgentCPUs, Of: domain.AgentTotal},
			}, Window: lasts(time.Minute)},
			"learnt": algorithm(domain.ScalingAlgorithm{External: &domain.ExternalAlgorithm{
				ScalingHook: domain.ScalingHook{URL: "http://agent.lab", Timeout: lasts(2 * time.Second)},
			}}, domain.ScalingSource{}),
			"learnt 2": algorithm(domain.ScalingAlgorithm{External: &domain.ExternalAlgorithm{ScalingHook: hook}},
				domain.ScalingSource{}),
		},
		Schedules: map[string]domain.ScalingSchedule{
			"day":   {Start: "0 8 * * *", End: "0 18 * * *", TimeZone: "Europe/Warsaw", Count: 4},
			"night": {Start: "0 20 * * *", End: "0 6 * * *"},
		},
		ScaleOut: domain.ScalingBehaviour{
			Stabilisation: lasts(0), Tolerance: new(0.0), Select: domain.SelectMin, Cooldown: lasts(time.Minute),
			Rates: []domain.ScalingRate{
				{Count: 4, Period: domain.Duration(15 * time.Second)},
				{Percent: 100, Period: domain.Duration(time.Minute)},
			},
		},
		Guards: domain.ScalingGuards{
			Busy: &domain.BusyGuard{GuardSource: domain.GuardSource{
				Prometheus: &domain.PrometheusSource{URL: "http://prometheus:9090", Query: "metrics_master_apps_Value"},
				HTTP:       &domain.HTTPQueue{URL: "http://spark-master-0:8080/json/", Path: "activeapps.#"},
			}, CPUPercent: new(10.0), GPUPercent: new(5.0), Pauses: domain.PauseAll},
			AtLeast: &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://front", Path: "replicas"}},
			Remove:  domain.RemoveHighestIndex,
		},
		Hooks: domain.ScalingHooks{
			BeforeRemoval: &hook,
			AfterAddition: &domain.ScalingHook{URL: "http://rebalancer:9090/came", Timeout: lasts(2 * time.Hour)},
		},
		Vertical: &domain.VerticalScaling{
			CPUs: &domain.AmountBounds{Min: 0.5, Max: 8}, MemoryMiB: &domain.AmountBounds{Min: 512, Max: 16384},
			Percentile: new(95.0), MarginPercent: new(0.0), LearnFor: lasts(time.Hour), Apply: domain.ApplyAtStart,
		},
		Paused: domain.PauseNone, OnDestroy: domain.OnDestroyKeep,
	}
	var diags diag.Diagnostics
	if diff := cmp.Diff(want, policytest.Full().Expand(&diags)); diff != "" || diags.HasError() {
		t.Errorf("%v (-want +got)\n%s", diags, diff)
	}
	if got := fmt.Sprint(policytest.Full().IdentityData()); got != `{"lab" "spark" "worker"}` {
		t.Errorf("the identity is %s", got)
	}
}

// Changes from outside are shown, whether they remove or add attributes.
func TestFlattenAutoscalingPolicyThatDrifted(t *testing.T) {
	var diags diag.Diagnostics
	full, small := policytest.Full(), policytest.Small()
	small.Cluster = full.Cluster
	for name, test := range map[string]struct {
		declared, live policy.Model
	}{"less": {full, small}, "more": {small, full}} {
		spec := test.live.Expand(&diags)
		got := policy.Flatten(spec, test.declared)
		if again := got.Expand(&diags); !again.Equal(spec) || diags.HasError() {
			t.Errorf("%s: it is shown as %+v, and is %+v; %v", name, again, spec, diags)
		}
		if name == "less" && (got.Guards == nil || got.Guards.Busy != nil || got.ScaleOut.Rates != nil ||
			got.Initial != nil || got.Metrics["used"].Forecast != nil) {
			t.Errorf("%s: it is shown as %+v", name, got)
		}
	}
}
