package provider

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// policyModels lets cmp look into models of policies.
var policyModels = cmp.AllowUnexported(autoscalingPolicyModel{}, measuredMetricModel{}, timeouts.Value{}, types.Object{})

// fullPolicy says all there is to say about a policy, and some of it in an unusual spelling.
func fullPolicy() autoscalingPolicyModel {
	text := types.StringValue
	metric := func(a scalingAlgorithmModel, source *scalingSourceModel) measuredMetricModel {
		return measuredMetricModel{scalingMetricModel: scalingMetricModel{Algorithm: a}, Source: source}
	}
	hook := hookModel{Command: []string{"drain", "-v"}, Timeout: text("90s")}
	used := metric(scalingAlgorithmModel{Target: &targetModel{inexact(60), new("mean")}}, &scalingSourceModel{Agent: &agentSourceModel{"cpu_percent", new("member")}})
	used.Window, used.Aggregation, used.StaleAfter = text("60s"), new("p95"), text("60s")
	used.OnMissing, used.MissingValue, used.Forecast = new("value"), inexact(0), &forecastModel{text("0s"), text("24h")}
	return autoscalingPolicyModel{
		scalingModel: scalingModel{
			Min: new(int64(0)), Max: new(int64(9)), Initial: new(int64(0)), Interval: text("60s"),
			Schedules: map[string]scalingScheduleModel{"day": {"0 8 * * *", "0 18 * * *", new("Europe/Warsaw"), 4}, "night": {Start: "0 20 * * *", End: "0 6 * * *"}},
			ScaleOut: &scalingBehaviourModel{
				Stabilisation: text("0s"), Tolerance: inexact(0), Select: new("min"), Cooldown: text("60s"), MaxStep: new(int64(0)),
				Rates: []scalingRateModel{{Count: new(int64(4)), Period: text("15s")}, {Percent: inexact(100), Count: new(int64(0)), Period: text("60s")}},
			},
			ScaleIn: &scalingBehaviourModel{Rates: []scalingRateModel{}},
		},
		ID: text("lab/spark/worker"), Cluster: clusterReference{text("lab"), text("swarm"), text("ssh://ops@gpu1")}, Group: text("spark"), Role: text("worker"),
		Metrics: map[string]measuredMetricModel{
			"used":     used,
			"heat":     metric(scalingAlgorithmModel{Heat: &heatModel{inexact(20), inexact(80), inexact(50), new(int64(5))}}, &scalingSourceModel{Prometheus: &prometheusSourceModel{"http://prometheus:9090", "up"}}),
			"hits":     metric(scalingAlgorithmModel{Threshold: &thresholdModel{Lower: inexact(0), Upper: inexact(80), Samples: new(int64(2)), StepOut: new(int64(3)), StepInPercent: inexact(10)}}, &scalingSourceModel{Queue: &queueSourceModel{HTTP: &httpQueueModel{"http://front", new("queue.length")}}}),
			"jobs":     metric(scalingAlgorithmModel{Queue: &queueModel{inexact(100), text("90s")}}, &scalingSourceModel{Queue: &queueSourceModel{Redis: &redisQueueModel{"redis:6379", "jobs", new(int64(0))}}}),
			"files":    metric(scalingAlgorithmModel{Queue: &queueModel{PerMember: inexact(1)}}, &scalingSourceModel{Queue: &queueSourceModel{Command: []string{"count", "files"}}}),
			"steps":    metric(scalingAlgorithmModel{MarginalGain: &marginalGainModel{inexact(0.1), text("2m"), text("60m")}}, &scalingSourceModel{Progress: &progressSourceModel{`step (?P<step>\d+)`, new("worker"), new("max")}}),
			"servers":  metric(scalingAlgorithmModel{Ratio: &ratioModel{"ps", inexact(4)}}, nil),
			"learnt":   metric(scalingAlgorithmModel{External: &hookModel{URL: new("http://agent.lab"), Timeout: text("2s")}}, nil),
			"learnt 2": metric(scalingAlgorithmModel{External: &hook}, nil),
		},
		Guards: &scalingGuardsModel{
			Busy: &busyGuardModel{&prometheusSourceModel{"http://prometheus:9090", "metrics_master_apps_Value"}, inexact(10), inexact(5)}, Remove: new("highest_index"), Drain: &hook, MemberHoursPerDay: inexact(0),
		},
		DryRun: new(false), Paused: new("none"), OnDestroy: new("keep"), Timeouts: noTimeouts(autoscalingPolicySchema(context.Background(), nil)),
	}
}

// smallPolicy leaves out what can be left out.
func smallPolicy() autoscalingPolicyModel {
	return autoscalingPolicyModel{
		scalingModel: scalingModel{Min: new(int64(1)), Max: new(int64(9))},
		ID:           types.StringValue("lab/spark/worker"), Cluster: clusterReference{types.StringValue("lab"), types.StringValue("process"), types.StringNull()},
		Group: types.StringValue("spark"), Role: types.StringValue("worker"), Timeouts: noTimeouts(autoscalingPolicySchema(context.Background(), nil)),
		Metrics: map[string]measuredMetricModel{"used": {
			scalingMetricModel: scalingMetricModel{Algorithm: scalingAlgorithmModel{Target: &targetModel{Value: inexact(60)}}}, Source: &scalingSourceModel{Agent: &agentSourceModel{Measure: "cpus"}},
		}},
	}
}

// The model has all attributes of the schema, and a policy that is read back is as it was declared, in its spelling. One that is imported says the same.
func TestAutoscalingPolicyModel(t *testing.T) {
	empty := smallPolicy()
	empty.Metrics, empty.Schedules, empty.ScaleOut, empty.ScaleIn, empty.Guards = map[string]measuredMetricModel{}, map[string]scalingScheduleModel{}, &scalingBehaviourModel{}, &scalingBehaviourModel{}, &scalingGuardsModel{}
	for name, m := range map[string]autoscalingPolicyModel{"full": fullPolicy(), "small": smallPolicy(), "empty": empty} {
		s := autoscalingPolicySchema(t.Context(), nil)
		state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), nil)}
		var kept autoscalingPolicyModel
		if diags := append(state.Set(t.Context(), m), state.Get(t.Context(), &kept)...); diags.HasError() {
			t.Fatalf("%s: %v", name, diags)
		}
		if diff := cmp.Diff(m, kept, policyModels); diff != "" {
			t.Errorf("%s: what was set is read as (-set +got)\n%s", name, diff)
		}
		var diags diag.Diagnostics
		spec := m.expand(&diags)
		if diff := cmp.Diff(m, flattenAutoscalingPolicy(spec, m), policyModels); diff != "" {
			t.Errorf("%s: what was declared is read back as (-want +got)\n%s", name, diff)
		}
		imported := flattenAutoscalingPolicy(spec, autoscalingPolicyModel{Cluster: m.Cluster, Timeouts: noTimeouts(autoscalingPolicySchema(context.Background(), nil))})
		if again := imported.expand(&diags); !again.Equal(spec) || diags.HasError() {
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
	used := algorithm(domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 60, Per: domain.TargetMean}}, domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUPercent, Of: domain.AgentMember}})
	used.Window, used.Aggregation, used.StaleAfter, used.OnMissing, used.MissingValue = lasts(time.Minute), domain.AggregateP95, lasts(time.Minute), domain.MissingAsValue, new(0.0)
	used.Forecast = &domain.Forecast{Season: lasts(24 * time.Hour)}
	want := domain.AutoscalingPolicy{
		Cluster: "lab", Group: "spark", Role: "worker", Max: 9, Initial: new(0), Interval: lasts(time.Minute),
		Metrics: map[string]domain.ScalingMetric{
			"used": used,
			"heat": algorithm(domain.ScalingAlgorithm{Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 80, Target: 50, Recurrence: 5}}, domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: "http://prometheus:9090", Query: "up"}}),
			"hits": algorithm(
				domain.ScalingAlgorithm{Threshold: &domain.ThresholdAlgorithm{Lower: new(0.0), Upper: new(80.0), Samples: 2, StepOut: 3, StepInPercent: 10}},
				domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: "http://front", Path: "queue.length"}}},
			),
			"jobs": algorithm(
				domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 100, CoolDown: lasts(90 * time.Second)}},
				domain.ScalingSource{Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: "redis:6379", Key: "jobs"}}},
			),
			"files": algorithm(domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1}}, domain.ScalingSource{Queue: &domain.QueueSource{Command: []string{"count", "files"}}}),
			"steps": algorithm(
				domain.ScalingAlgorithm{MarginalGain: &domain.MarginalGainAlgorithm{Threshold: 0.1, Settle: lasts(2 * time.Minute), RetryAfter: lasts(time.Hour)}},
				domain.ScalingSource{Progress: &domain.ProgressSource{Pattern: `step (?P<step>\d+)`, Role: "worker", Combine: domain.CombineMax}},
			),
			"servers":  algorithm(domain.ScalingAlgorithm{Ratio: &domain.RatioAlgorithm{Role: "ps", Per: 4}}, domain.ScalingSource{}),
			"learnt":   algorithm(domain.ScalingAlgorithm{External: &domain.ExternalAlgorithm{ScalingHook: domain.ScalingHook{URL: "http://agent.lab", Timeout: lasts(2 * time.Second)}}}, domain.ScalingSource{}),
			"learnt 2": algorithm(domain.ScalingAlgorithm{External: &domain.ExternalAlgorithm{ScalingHook: hook}}, domain.ScalingSource{}),
		},
		Schedules: map[string]domain.ScalingSchedule{"day": {Start: "0 8 * * *", End: "0 18 * * *", TimeZone: "Europe/Warsaw", Count: 4}, "night": {Start: "0 20 * * *", End: "0 6 * * *"}},
		ScaleOut: domain.ScalingBehaviour{
			Stabilisation: lasts(0), Tolerance: new(0.0), Select: domain.SelectMin, Cooldown: lasts(time.Minute),
			Rates: []domain.ScalingRate{{Count: 4, Period: domain.Duration(15 * time.Second)}, {Percent: 100, Period: domain.Duration(time.Minute)}},
		},
		Guards: domain.ScalingGuards{
			Busy:   &domain.BusyGuard{Prometheus: &domain.PrometheusSource{URL: "http://prometheus:9090", Query: "metrics_master_apps_Value"}, CPUPercent: new(10.0), GPUPercent: new(5.0)},
			Remove: domain.RemoveHighestIndex, Drain: &hook,
		},
		Paused: domain.PauseNone, OnDestroy: domain.OnDestroyKeep,
	}
	var diags diag.Diagnostics
	if diff := cmp.Diff(want, fullPolicy().expand(&diags)); diff != "" || diags.HasError() {
		t.Errorf("%v (-want +got)\n%s", diags, diff)
	}
	if got := fullPolicy().identity(); got.Cluster.ValueString()+"/"+got.Group.ValueString()+"/"+got.Role.ValueString() != "lab/spark/worker" {
		t.Errorf("the identity is %+v", got)
	}
}

// What somebody else has changed is shown as it is, though it says nothing now that was declared, or something that was not.
func TestFlattenAutoscalingPolicyThatDrifted(t *testing.T) {
	var diags diag.Diagnostics
	full, small := fullPolicy(), smallPolicy()
	small.Cluster = full.Cluster
	for name, test := range map[string]struct{ declared, live autoscalingPolicyModel }{"less": {full, small}, "more": {small, full}} {
		spec := test.live.expand(&diags)
		got := flattenAutoscalingPolicy(spec, test.declared)
		if again := got.expand(&diags); !again.Equal(spec) || diags.HasError() {
			t.Errorf("%s: it is shown as %+v, and is %+v; %v", name, again, spec, diags)
		}
		if name == "less" && (got.Guards == nil || got.Guards.Busy != nil || got.ScaleOut.Rates != nil || got.Initial != nil || got.Metrics["used"].Forecast != nil) {
			t.Errorf("%s: it is shown as %+v", name, got)
		}
	}
}
