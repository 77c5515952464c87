package backtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// hpa is a policy like that of a Horizontal Pod Autoscaler.
func hpa() policyModel {
	target := policy.ScalingMetricModel{
		Algorithm: &policy.ScalingAlgorithmModel{Target: &policy.TargetModel{Value: providertest.Inexact(50)}},
	}
	return policyModel{
		ScalingModel: policy.ScalingModel{Min: new(int64(1)), Max: new(int64(10))},
		Metrics:      map[string]metricModel{"cpu": {ScalingMetricModel: target}},
	}
}

// The model has all attributes of the schema, and expands to what was configured.
func TestPolicyBacktestModel(t *testing.T) {
	m := Model{
		Policy: hpa(),
		Trace: traceModel{Load: &loadModel{
			"2026-01-31T13:00:00+01:00", "1m", []types.Float64{providertest.Inexact(1), providertest.Inexact(2.5)},
		}},
		Model: memberModel{Capacity: providertest.Inexact(50), Startup: types.StringValue("90s")},
	}
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	trace, problems := m.Trace.expand()
	if diff := cmp.Diff(autoscale.Trace{Start: start, Step: time.Minute, Load: []float64{1, 2.5}}, trace); diff != "" ||
		problems != nil {
		t.Errorf("the trace has problems %v (-want +got):\n%s", problems, diff)
	}
	model, problems := m.Model.expand(m.Policy.signals())
	want := autoscale.Model{
		Capacity: 50, Startup: 90 * time.Second,
		Signals: map[string]autoscale.Signal{"cpu": autoscale.SignalUtilisation},
	}
	if diff := cmp.Diff(want, model); diff != "" || problems != nil {
		t.Errorf("the model has problems %v (-want +got):\n%s", problems, diff)
	}
	m.flatten(autoscale.Course{
		Steps: []autoscale.Step{
			{At: start, To: 1, Why: "to begin with"}, {At: start.Add(time.Minute), From: 1, To: 3, Why: "more"},
		},
		Changes: 1, Counts: []int{1, 3}, Ready: []int{1, 1}, Under: 30 * time.Second, MemberHours: 0.1,
		ChangesPerHour: 30,
	}, trace, model)
	if m.Changes.ValueInt64() != 1 || m.UnderProvisionedSeconds.ValueFloat64() != 30 ||
		m.UnderProvisionedPercent.ValueFloat64() != 25 || !strings.HasPrefix(m.SVG.ValueString(), "<svg") {
		t.Errorf("got %+v", m)
	}
	s := Schema()
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), nil)}
	if diags := state.Set(t.Context(), m); diags.HasError() {
		t.Fatalf("set: %v", diags)
	}
	var kept Model
	if diags := state.Get(t.Context(), &kept); diags.HasError() {
		t.Fatalf("get: %v", diags)
	}
	if diff := cmp.Diff(m, kept, cmp.AllowUnexported(policyModel{}, metricModel{})); diff != "" {
		t.Errorf("(-set +got)\n%s", diff)
	}
}

// The newest steps are shown, and the number of those left out.
func TestStepsAreBounded(t *testing.T) {
	for name, test := range map[string]struct{ steps, changes, shown, leftOut int }{
		"few":          {3, 2, 3, 0},
		"just as many": {mostSteps, mostSteps - 1, mostSteps, 0},
		"more":         {mostSteps + 10, mostSteps + 9, mostSteps, 10},
		"more than it keeps": {
			autoscale.MaxSteps, 7 * autoscale.MaxSteps, mostSteps, 7*autoscale.MaxSteps + 1 - mostSteps,
		},
	} {
		t.Run(name, func(t *testing.T) {
			course := autoscale.Course{Changes: test.changes}
			for i := range test.steps {
				course.Steps = append(course.Steps, autoscale.Step{From: i, To: i + 1})
			}
			var m Model
			m.flatten(course, autoscale.Trace{}, autoscale.Model{})
			if len(m.Steps) != test.shown || m.StepsLeftOut.ValueInt64() != int64(test.leftOut) ||
				m.Steps[0].From != int64(test.steps-test.shown) || m.Changes.ValueInt64() != int64(test.changes) {
				t.Errorf("%d steps from %d on, %s left out, %s changes", len(m.Steps), m.Steps[0].From, m.StepsLeftOut,
					m.Changes)
			}
		})
	}
}

// A forecast without a lead looks as far ahead as members take to start.
func TestBacktestLearnsTheLead(t *testing.T) {
	for given, want := range map[types.String]time.Duration{
		types.StringNull(): 90 * time.Second, types.StringValue("3m"): 3 * time.Minute,
	} {
		m := Model{Policy: hpa(), Trace: traceModel{
			Load: &loadModel{"2026-01-31T12:00:00Z", "1m", []types.Float64{providertest.Inexact(1)}},
		}, Model: memberModel{Capacity: providertest.Inexact(50), Startup: types.StringValue("90s")}}
		cpu := m.Policy.Metrics["cpu"]
		cpu.Forecast = &policy.ForecastModel{Lead: given}
		m.Policy.Metrics["cpu"] = cpu
		var diags diag.Diagnostics
		policy, _, _, problems := m.expand(t.Context(), nil, &diags)
		if got := time.Duration(policy.Metrics["cpu"].Forecast.Lead); got != want || problems != nil ||
			diags.HasError() {
			t.Errorf("a lead of %s is %s, want %s; %v, %v", given, got, want, problems, diags)
		}
	}
}

// A metric's signal follows from its algorithm unless it is set.
func TestSignals(t *testing.T) {
	metric := func(algorithm policy.ScalingAlgorithmModel, signal *string) metricModel {
		return metricModel{policy.ScalingMetricModel{Algorithm: &algorithm}, signal}
	}
	got := policyModel{Metrics: map[string]metricModel{
		"target": metric(policy.ScalingAlgorithmModel{Target: &policy.TargetModel{Value: providertest.Inexact(50)}},
			nil),
		"mean": metric(policy.ScalingAlgorithmModel{
			Target: &policy.TargetModel{Value: providertest.Inexact(50), Per: new("mean")},
		}, nil),
		"total": metric(policy.ScalingAlgorithmModel{
			Target: &policy.TargetModel{Value: providertest.Inexact(50), Per: new("total")},
		}, nil),
		"risk": metric(policy.ScalingAlgorithmModel{Risk: &policy.RiskModel{
			Percent: providertest.Inexact(1), Capacity: providertest.Inexact(20), Per: new("total"),
		}}, nil),
		"queue": metric(policy.ScalingAlgorithmModel{Queue: &policy.QueueModel{PerMember: providertest.Inexact(5)}},
			nil),
		"said": metric(policy.ScalingAlgorithmModel{Queue: &policy.QueueModel{PerMember: providertest.Inexact(5)}},
			new("load")),
	}}.signals()
	want := map[string]autoscale.Signal{
		"target": autoscale.SignalUtilisation, "mean": autoscale.SignalUtilisation, "total": autoscale.SignalLoad,
		"risk": autoscale.SignalLoad, "queue": autoscale.SignalQueue, "said": autoscale.SignalLoad,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPolicyBacktestProblems(t *testing.T) {
	const noon = "2026-01-31T12:00:00Z"
	metric := func(metric metricModel) func(*Model) {
		return func(m *Model) { m.Policy.Metrics["cpu"] = metric }
	}
	algorithm := func(a policy.ScalingAlgorithmModel) func(*Model) {
		return metric(metricModel{ScalingMetricModel: policy.ScalingMetricModel{Algorithm: &a}})
	}
	load := func(start, step string, values ...float64) func(*Model) {
		var given []types.Float64
		for _, v := range values {
			given = append(given, providertest.Inexact(v))
		}
		return func(m *Model) { m.Trace = traceModel{Load: &loadModel{start, step, given}} }
	}
	members := func(capacity float64, startup string) func(*Model) {
		return func(m *Model) {
			m.Model = memberModel{Capacity: types.Float64Value(capacity), Startup: types.StringValue(startup)}
		}
	}
	changes := func(takes string, loss float64) func(*Model) {
		return func(m *Model) {
			m.Model.ChangeTime, m.Model.ChangeLossPercent = types.StringValue(takes), types.Float64Value(loss)
		}
	}
	remembers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"1"]]}]}}`)
	}))
	t.Cleanup(remembers.Close)
	remembered := func(end string) func(*Model) {
		return func(m *Model) {
			m.Policy.Interval = types.StringValue("1h")
			m.Trace = traceModel{Prometheus: &tracePrometheusModel{
				URL: remembers.URL, Query: "load", Start: "1970-01-01T00:00:00Z", End: end, Step: "24h",
			}}
		}
	}
	for name, test := range map[string]struct {
		change func(*Model)
		// want is the path and the start of the detail; "" for no problem.
		want string
	}{
		"right":               {func(*Model) {}, ""},
		"a startup of 0":      {members(50, "0s"), ""},
		"a change that costs": {changes("40s", 15), ""},
		"a change of no time": {
			changes("-1s", 15),
			`model.change_time: "-1s" is not a valid time for data to move; use a duration of 0 or more, such as "40s"`,
		},
		"a change that takes all": {
			changes("40s", 100), `model.change_loss_percent: 100 % is out of range; use 0 to less than 100`,
		},
		"marginal gain": {
			algorithm(policy.ScalingAlgorithmModel{
				MarginalGain: &policy.MarginalGainModel{Threshold: providertest.Inexact(0.1)},
			}),
			`policy.metrics["cpu"].algorithm.marginal_gain: marginal_gain with threshold = 0.1 follows training progress, which a backtest does not model; target, heat, threshold, queue, risk and learned can be tested`,
		},
		"risk": {
			algorithm(policy.ScalingAlgorithmModel{Risk: &policy.RiskModel{Percent: providertest.Inexact(1)}}), "",
		},
		"risk of a total": {
			algorithm(policy.ScalingAlgorithmModel{
				Risk: &policy.RiskModel{Percent: providertest.Inexact(1), Per: new("total")},
			}),
			`policy.metrics["cpu"].algorithm.risk.capacity: per = "total" requires capacity`,
		},
		"ratio": {
			algorithm(policy.ScalingAlgorithmModel{
				Ratio: &policy.RatioModel{Role: "ps", Per: providertest.Inexact(2)},
			}),
			`policy.metrics["cpu"].algorithm.ratio: ratio follows the members of role "ps", and a backtest has only one role; target, heat, threshold, queue, risk and learned can be tested`,
		},
		"external": {
			algorithm(policy.ScalingAlgorithmModel{External: &policy.HookModel{URL: new("http://agent.lab")}}),
			`policy.metrics["cpu"].algorithm.external: external asks a program of yours, and a backtest asks none; target, heat, threshold, queue, risk and learned can be tested`,
		},
		"learned": {algorithm(policy.ScalingAlgorithmModel{
			Learned: &policy.LearnedModel{Model: types.StringValue(qmodeltest.Text(qmodeltest.Band(0.2, 0.8)))},
		}), ""},
		"learned by another version": {
			algorithm(policy.ScalingAlgorithmModel{
				Learned: &policy.LearnedModel{Model: types.StringValue(`{"version": 2}`)},
			}),
			`policy.metrics["cpu"].algorithm.learned.model: version is 2; this version of Trainyard supports version 1`,
		},
		"signal": {
			func(m *Model) {
				m.Policy.Metrics["cpu"] = metricModel{m.Policy.Metrics["cpu"].ScalingMetricModel, new("cpu")}
			},
			`policy.metrics["cpu"].signal: unknown signal "cpu"; use one of ["utilisation" "load" "queue" "latency" "changing" "skew"]`,
		},
		"a policy at odds": {func(m *Model) { m.Policy.Max = new(int64(0)) }, "policy."},
		"two traces": {
			func(m *Model) { m.Trace.CSV = new("") },
			"trace: 2 traces are given; set exactly one of csv, load and prometheus",
		},
		"no trace": {
			func(m *Model) { m.Trace = traceModel{} }, `trace: no trace is given; set csv = file("load.csv")`,
		},
		"start": {
			load("yesterday", "1m", 1), `trace.load.start: "yesterday" is not a valid time in RFC 3339`,
		},
		"step": {
			load(noon, "1", 1), `trace.load.step: "1" is not a valid step; use a duration above 0`,
		},
		"step of 0": {load(noon, "0s", 1), `trace.load.step: "0s" is not a valid step`},
		"no values": {load(noon, "1m"), "trace.load.values: no values are given; at least 1 is required"},
		"load below 0": {
			load(noon, "1m", 1, -2, -3), "trace.load.values[1]: -2 is not a valid load; use 0 or more",
		},
		"centuries": {load(noon, "2000000h", 1), "trace: it covers 228 years; at most 100 are allowed"},
		"a century remembered": {
			remembered("2071-01-01T00:00:00Z"), "trace: it covers 101 years; at most 100 are allowed",
		},
		"decades remembered": {remembered("2069-01-01T00:00:00Z"), ""},
		"no capacity":        {members(0, "0s"), "model.capacity: capacity must be above 0, got 0"},
		"startup": {
			members(50, "-1s"),
			`model.startup: "-1s" is not a valid time for a member to start; use a duration of 0 or more`,
		},
		"no duration": {members(50, "soon"), `model.startup: "soon" is not a valid time for a member to start`},
		"many decisions": {
			load(noon, "10000h", 1, 2, 3),
			"trace: it takes 21600000 decisions, one every 5s; at most 12614400 are allowed: test a part of it, or raise policy.interval",
		},
		"a long trace, and few decisions": {func(m *Model) {
			load(noon, "10000h", 1, 2, 3)(m)
			m.Policy.Interval = types.StringValue("10s")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := Model{Policy: hpa(), Model: memberModel{Capacity: providertest.Inexact(50)}}
			load(noon, "1m", 1)(&m)
			test.change(&m)
			var diags diag.Diagnostics
			_, _, _, problems := m.expand(t.Context(), nil, &diags)
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%s: %s", p.Path, p.Detail))
			}
			if len(got) != min(1, len(test.want)) || !strings.HasPrefix(strings.Join(got, "\n"), test.want) ||
				diags.HasError() {
				t.Errorf("got %q, want %q; %v", got, test.want, diags)
			}
		})
	}
}

// TestObservedSignals: the signal of a metric that a learned algorithm observes follows from the
// feature, unless it is set.
func TestObservedSignals(t *testing.T) {
	observed := policy.LearnedModel{Per: new("total"),
		Observes: types.MapValueMust(types.StringType, map[string]attr.Value{
			"cpu": types.StringValue("cpu"),
			"p99": types.StringValue("latency"), "lag_growth": types.StringValue("lag"),
			"reassigning": types.StringValue("moves"), "skew": types.StringValue("skew"),
		})}
	m := policyModel{Metrics: map[string]metricModel{
		"rate": {
			ScalingMetricModel: policy.ScalingMetricModel{Algorithm: &policy.ScalingAlgorithmModel{Learned: &observed}},
		},
		"cpu": {}, "latency": {}, "lag": {Signal: new("load")}, "moves": {}, "skew": {}, "other": {},
	}}
	want := map[string]autoscale.Signal{
		"rate": autoscale.SignalLoad, "cpu": autoscale.SignalUtilisation, "latency": autoscale.SignalLatency,
		"lag":   autoscale.SignalLoad,
		"moves": autoscale.SignalChanging, "skew": autoscale.SignalSkew, "other": autoscale.SignalUtilisation,
	}
	if diff := cmp.Diff(want, m.signals()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, f := range qmodel.Features {
		if _, found := autoscale.FeatureSignals[f.Name]; found != f.Observed {
			t.Errorf("feature %s is made of a metric: %t, and a backtest shows it: %t", f.Name, f.Observed, found)
		}
	}
}
