package policytest

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// TrainedModel is the model of the metric "trained".
func TrainedModel() *qmodel.Model { return qmodel.New(qmodel.DQN, []string{"load", "cpu"}) }

// Full sets every attribute of a policy, some in an unusual spelling.
func Full() policy.Model {
	text := types.StringValue
	metric := func(a policy.ScalingAlgorithmModel, source *policy.ScalingSourceModel) policy.MeasuredMetricModel {
		return policy.MeasuredMetricModel{ScalingMetricModel: policy.ScalingMetricModel{Algorithm: &a}, Source: source}
	}
	hook := policy.HookModel{Command: []string{"drain", "-v"}, Timeout: text("90s")}
	used := metric(policy.ScalingAlgorithmModel{
		Target: &policy.TargetModel{Value: providertest.Inexact(60), Per: new("mean")},
	}, &policy.ScalingSourceModel{Agent: &policy.AgentSourceModel{Measure: "cpu_percent", Of: new("member")}})
	used.Window, used.Aggregation, used.StaleAfter, used.ReadyAfter = text("60s"), new("p95"), text("60s"), text("90s")
	used.OnMissing, used.MissingValue, used.Forecast = new("value"), providertest.Inexact(0), &policy.ForecastModel{
		Lead: text("0s"), Season: text("24h"),
	}
	return policy.Model{
		ScalingModel: policy.ScalingModel{
			Min: new(int64(0)), Max: new(int64(9)), Initial: new(int64(0)), Interval: text("60s"),
			Schedules: map[string]policy.ScalingScheduleModel{
				"day":   {Start: "0 8 * * *", End: "0 18 * * *", TimeZone: new("Europe/Warsaw"), Count: 4},
				"night": {Start: "0 20 * * *", End: "0 6 * * *"},
			},
			ScaleOut: &policy.ScalingBehaviourModel{
				Stabilisation: text("0s"), Tolerance: providertest.Inexact(0), Select: new("min"),
				Cooldown: text("60s"), MaxStep: new(int64(0)),
				Rates: []policy.ScalingRateModel{
					{Count: new(int64(4)), Period: text("15s")},
					{Percent: providertest.Inexact(100), Count: new(int64(0)), Period: text("60s")},
				},
			},
			ScaleIn: &policy.ScalingBehaviourModel{Rates: []policy.ScalingRateModel{}},
		},
		ID: text("lab/spark/worker"), Cluster: resourcekit.ClusterReference{
			Name: text("lab"), Engine: text("swarm"), Endpoint: text("ssh://ops@gpu1"),
		}, Group: text("spark"), Role: text("worker"),
		Metrics: map[string]policy.MeasuredMetricModel{
			"used": used,
			"heat": metric(policy.ScalingAlgorithmModel{Heat: &policy.HeatModel{
				Lower: providertest.Inexact(20), Upper: providertest.Inexact(80), Target: providertest.Inexact(50),
				Recurrence: new(int64(5)),
			}}, &policy.ScalingSourceModel{
				Prometheus: &policy.PrometheusSourceModel{URL: "http://prometheus:9090", Query: "up"},
			}),
			"hits": metric(policy.ScalingAlgorithmModel{Threshold: &policy.ThresholdModel{
				Lower: providertest.Inexact(0), Upper: providertest.Inexact(80), Samples: new(int64(2)),
				StepOut: new(int64(3)), StepInPercent: providertest.Inexact(10),
			}}, &policy.ScalingSourceModel{Queue: &policy.QueueSourceModel{
				HTTP: &policy.HTTPQueueModel{URL: "http://front", Path: new("queue.length")},
			}}),
			"jobs": metric(policy.ScalingAlgorithmModel{
				Queue: &policy.QueueModel{PerMember: providertest.Inexact(100), CoolDown: text("90s")},
			}, &policy.ScalingSourceModel{Queue: &policy.QueueSourceModel{
				Redis: &policy.RedisQueueModel{Address: "redis:6379", Key: "jobs", Database: new(int64(0))},
			}}),
			"files": metric(policy.ScalingAlgorithmModel{Queue: &policy.QueueModel{PerMember: providertest.Inexact(1)}},
				&policy.ScalingSourceModel{Queue: &policy.QueueSourceModel{Command: []string{"count", "files"}}}),
			"steps": metric(policy.ScalingAlgorithmModel{MarginalGain: &policy.MarginalGainModel{
				Threshold: providertest.Inexact(0.1), Settle: text("2m"), RetryAfter: text("60m"),
			}}, &policy.ScalingSourceModel{Progress: &policy.ProgressSourceModel{
				Pattern: `step (?P<step>\d+)`, Role: new("worker"), Combine: new("max"),
			}}),
			"promised": metric(policy.ScalingAlgorithmModel{Risk: &policy.RiskModel{
				Percent: providertest.Inexact(0.5), Capacity: providertest.Inexact(20), Per: new("total"),
			}}, &policy.ScalingSourceModel{
				Prometheus: &policy.PrometheusSourceModel{URL: "http://prometheus:9090", Query: "up"},
			}),
			"trained": metric(policy.ScalingAlgorithmModel{Learned: &policy.LearnedModel{
				Model: text(qmodeltest.Text(TrainedModel())), Capacity: providertest.Inexact(500), Per: new("total"),
				LatencyBound: providertest.Inexact(0.25), LagCapacity: providertest.Inexact(0),
				Observes: types.MapValueMust(types.StringType, map[string]attr.Value{"cpu": text("seen")}),
			}}, &policy.ScalingSourceModel{
				Prometheus: &policy.PrometheusSourceModel{URL: "http://prometheus:9090", Query: "up"},
			}),
			"servers": metric(policy.ScalingAlgorithmModel{
				Ratio: &policy.RatioModel{Role: "ps", Per: providertest.Inexact(4)},
			}, nil),
			"filled": metric(policy.ScalingAlgorithmModel{IdleRoom: &policy.IdleRoomModel{KeepFree: new(int64(2))}},
				nil),
			"seen": {
				Source: &policy.ScalingSourceModel{Agent: &policy.AgentSourceModel{Measure: "cpus", Of: new("total")}},
				Window: text("60s"),
			},
			"learnt": metric(policy.ScalingAlgorithmModel{
				External: &policy.HookModel{URL: new("http://agent.lab"), Timeout: text("2s")},
			}, nil),
			"learnt 2": metric(policy.ScalingAlgorithmModel{External: &hook}, nil),
		},
		Guards: &policy.ScalingGuardsModel{
			Busy: &policy.BusyGuardModel{GuardSourceModel: policy.GuardSourceModel{
				Prometheus: &policy.PrometheusSourceModel{
					URL: "http://prometheus:9090", Query: "metrics_master_apps_Value",
				}, HTTP: &policy.HTTPQueueModel{URL: "http://spark-master-0:8080/json/", Path: new("activeapps.#")},
			}, CPUPercent: providertest.Inexact(10), GPUPercent: providertest.Inexact(5), Pauses: new("all")},
			AtLeast: &policy.GuardSourceModel{HTTP: &policy.HTTPQueueModel{URL: "http://front", Path: new("replicas")}},
			Remove:  new("highest_index"), MemberHoursPerDay: providertest.Inexact(0),
		},
		Hooks: &policy.ScalingHooksModel{
			BeforeRemoval: &hook,
			AfterAddition: &policy.HookModel{URL: new("http://rebalancer:9090/came"), Timeout: text("120m")},
		},
		Vertical: &policy.VerticalModel{
			CPUs:       &policy.AmountBoundsModel{Min: providertest.Inexact(0.5), Max: providertest.Inexact(8)},
			MemoryMiB:  &policy.AmountBoundsModel{Min: providertest.Inexact(512), Max: providertest.Inexact(16384)},
			Percentile: providertest.Inexact(95), MarginPercent: providertest.Inexact(0), LearnFor: text("1h"),
			Apply: new("restart"),
		},
		DryRun: new(false), Paused: new("none"), OnDestroy: new("keep"),
		Timeouts: providertest.NoTimeouts(policy.Schema(context.Background(), nil)),
	}
}

// Small omits every optional attribute.
func Small() policy.Model {
	return policy.Model{
		ScalingModel: policy.ScalingModel{Min: new(int64(1)), Max: new(int64(9))},
		ID:           types.StringValue("lab/spark/worker"), Cluster: resourcekit.ClusterReference{
			Name: types.StringValue("lab"), Engine: types.StringValue("process"), Endpoint: types.StringNull(),
		},
		Group: types.StringValue("spark"), Role: types.StringValue("worker"),
		Timeouts: providertest.NoTimeouts(policy.Schema(context.Background(), nil)),
		Metrics: map[string]policy.MeasuredMetricModel{"used": {
			ScalingMetricModel: policy.ScalingMetricModel{
				Algorithm: &policy.ScalingAlgorithmModel{Target: &policy.TargetModel{Value: providertest.Inexact(60)}},
			}, Source: &policy.ScalingSourceModel{Agent: &policy.AgentSourceModel{Measure: "cpus"}},
		}},
	}
}
