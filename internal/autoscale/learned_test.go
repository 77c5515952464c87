package autoscale

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// learnedOf returns a metric with a model.
func learnedOf(model *qmodel.Model, change ...func(a *domain.LearnedAlgorithm)) domain.ScalingMetric {
	a := &domain.LearnedAlgorithm{Model: domain.NewLearnedModel(qmodeltest.Text(model))}
	for _, c := range change {
		c(a)
	}
	return domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Learned: a}}
}

// twoFeatures returns a model that wants one more above a load, and one fewer while the CPUs are idle.
func twoFeatures() *qmodel.Model {
	m := qmodel.New(qmodel.DQN, []string{"load", "cpu"})
	m.Layers[0].Weights[0], m.Layers[0].Weights[3] = 1, 1 // the load first, and the CPUs second
	m.Layers[1].Weights[0], m.Layers[1].Bias[0] = 1, -0.7
	m.Layers[1].Weights[qmodel.Hidden+1], m.Layers[1].Bias[1] = -1, 0.3
	m.Layers[2].Weights[qmodel.Up*qmodel.Hidden], m.Layers[2].Weights[qmodel.Down*qmodel.Hidden+1] = 1, 1
	return m
}

// allObserved returns a metric whose model uses all features, and the other metrics that it observes.
func allObserved() map[string]domain.ScalingMetric {
	model := qmodel.New(qmodel.DoubleDQN, qmodel.FeatureNames())
	model.Layers[2].Bias[qmodel.Up] = 1 // always one more
	return map[string]domain.ScalingMetric{
		"rate": learnedOf(model, func(a *domain.LearnedAlgorithm) {
			a.Per, a.Capacity, a.LatencyBound = domain.TargetTotal, 500, 0.25
			a.Observes = map[string]string{
				"cpu": "cpu", "p99": "latency", "lag_growth": "lag", "reassigning": "moves", "skew": "skew",
			}
		}),
		"cpu": {}, "latency": {}, "lag": {}, "moves": {}, "skew": {},
	}
}

// TestObserve checks that each feature is what its documentation says, in its unit and within its bounds.
func TestObserve(t *testing.T) {
	usual := Observation{
		Now: noon, Count: 4, Ready: 4, Max: 8, Every: 15 * time.Second, LastChange: noon.Add(-time.Minute), Load: 3,
		CPU: 0.5, P99: 0.2, Skew: 0.1,
	}
	history := func(samples ...LoadSample) LoadHistory { return LoadHistory{samples} }
	ago := func(d time.Duration, load, lag float64) LoadSample { return LoadSample{noon.Add(-d), load, lag} }
	for name, test := range map[string]struct {
		history LoadHistory
		change  func(o *Observation)
		want    map[int]float64
	}{
		"as usual": {LoadHistory{}, func(*Observation) {}, map[int]float64{
			qmodel.Load: 0.75, qmodel.LoadSlope1m: 0, qmodel.LoadSlope5m: 0, qmodel.CPU: 0.5, qmodel.LagGrowth: 0,
			qmodel.P99: 0.2, qmodel.Count: 0.5, qmodel.Ready: 1, qmodel.Starting: 0,
			qmodel.Reassigning: 0, qmodel.SinceChange: 4, qmodel.Skew: 0.1,
		}},
		"two start": {
			LoadHistory{}, func(o *Observation) { o.Ready = 2 },
			map[int]float64{qmodel.Load: 1.5, qmodel.Ready: 0.5, qmodel.Starting: 1},
		},
		"none is ready": {
			LoadHistory{}, func(o *Observation) { o.Ready = 0 },
			map[int]float64{qmodel.Load: 3, qmodel.Ready: 0, qmodel.Starting: 1},
		},
		"none there is to be": {
			LoadHistory{}, func(o *Observation) { o.Count, o.Ready = 0, 0 },
			map[int]float64{qmodel.Load: 3, qmodel.Count: 0, qmodel.Ready: 0, qmodel.Starting: 0},
		},
		"the first decision": {
			LoadHistory{}, func(o *Observation) { o.LastChange = time.Time{} }, map[int]float64{qmodel.SinceChange: 60},
		},
		"long ago": {
			LoadHistory{}, func(o *Observation) { o.LastChange = noon.Add(-time.Hour) },
			map[int]float64{qmodel.SinceChange: 60},
		},
		"a change in the future": {
			LoadHistory{}, func(o *Observation) { o.LastChange = noon.Add(time.Hour) },
			map[int]float64{qmodel.SinceChange: 0},
		},
		"data moves": {
			LoadHistory{}, func(o *Observation) { o.Reassigning = true }, map[int]float64{qmodel.Reassigning: 1},
		},
		"more than anybody bears": {
			LoadHistory{}, func(o *Observation) { o.Load, o.CPU, o.P99, o.Skew = 1e300, 99, 99, 99 },
			map[int]float64{qmodel.Load: 4, qmodel.CPU: 4, qmodel.P99: 10, qmodel.Skew: 10},
		},
		"less than nothing": {
			LoadHistory{}, func(o *Observation) { o.Load, o.CPU, o.P99, o.Skew = -1, -1, -1, -1 },
			map[int]float64{qmodel.Load: 0, qmodel.CPU: 0, qmodel.P99: 0, qmodel.Skew: 0},
		},
		// 3 now, 2 a minute ago: a quarter of the four ready members. 1 five minutes ago: a tenth.
		"it rises": {
			history(ago(5*time.Minute, 1, 0), ago(time.Minute, 2, 0), ago(10*time.Second, 2.9, 0)),
			func(*Observation) {}, map[int]float64{qmodel.LoadSlope1m: 0.25, qmodel.LoadSlope5m: 0.1},
		},
		"it falls": {
			history(ago(time.Minute, 4, 0)), func(*Observation) {},
			map[int]float64{qmodel.LoadSlope1m: -0.25, qmodel.LoadSlope5m: 0},
		},
		"the sample before": {
			history(ago(2*time.Minute, 1, 0), ago(59*time.Second, 2, 0)), func(*Observation) {},
			map[int]float64{qmodel.LoadSlope1m: 0.25},
		},
		"a gap": {
			history(ago(11*time.Minute, 1, 0)), func(*Observation) {},
			map[int]float64{qmodel.LoadSlope1m: 0, qmodel.LoadSlope5m: 0},
		},
		"a long interval": {
			history(ago(11*time.Minute, 1, 0)), func(o *Observation) { o.Every = 10 * time.Minute },
			map[int]float64{qmodel.LoadSlope1m: 2.0 / 11 / 4, qmodel.LoadSlope5m: 2.0 / 11 / 4},
		},
		"the clock is put back": {
			history(ago(-time.Minute, 1, 0)), func(*Observation) {}, map[int]float64{qmodel.LoadSlope1m: 0},
		},
		// In a minute, 60 more member-seconds wait, a quarter of what four members work off.
		"the lag grows": {
			history(ago(time.Minute, 3, 10)), func(o *Observation) { o.Lag = 70 },
			map[int]float64{qmodel.LagGrowth: 0.25},
		},
		"the lag grows too fast": {
			history(ago(time.Minute, 3, 0)), func(o *Observation) { o.Lag = 1e9 }, map[int]float64{qmodel.LagGrowth: 4},
		},
		"the lag is worked off": {
			history(ago(time.Minute, 3, 70)), func(o *Observation) { o.Lag = 10 },
			map[int]float64{qmodel.LagGrowth: -0.25},
		},
		"samples beyond a number": {
			history(ago(time.Minute, 1e308, 1e308)), func(*Observation) {},
			map[int]float64{qmodel.LoadSlope1m: -4, qmodel.LagGrowth: -4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := usual
			test.change(&o)
			got := test.history.Observe(o)
			for feature, want := range test.want {
				if math.Abs(got[feature]-want) > 1e-9 {
					t.Errorf("%s is %v, want %v", qmodel.Features[feature].Name, got[feature], want)
				}
			}
			if again := test.history.Observe(o); again != got {
				t.Errorf("asked twice, it is %v, and then %v", got, again)
			}
		})
	}
}

// TestLoadHistoryIsSmall checks that after a day with a decision every second, the history takes a few kilobytes, and
// its slopes are those of the load.
func TestLoadHistoryIsSmall(t *testing.T) {
	var h LoadHistory
	var s qmodel.State
	for second := range 24 * 3600 {
		s = h.Observe(Observation{
			Now: noon.Add(time.Duration(second) * time.Second), Count: 2, Ready: 2, Max: 4, Every: time.Second,
			Load: float64(second) / 600,
		})
	}
	stored, err := json.Marshal(h)
	if err != nil || len(stored) > 4<<10 {
		t.Errorf("it has %d bytes (%v)", len(stored), err)
	}
	if want := 0.05; math.Abs(s[qmodel.LoadSlope1m]-want) > 1e-9 || math.Abs(s[qmodel.LoadSlope5m]-want) > 1e-9 {
		t.Errorf("the slopes are %v and %v, want %v", s[qmodel.LoadSlope1m], s[qmodel.LoadSlope5m], want)
	}
}

// TestLearned checks that the best allowed action is chosen, and that the reason says what each is worth, or why it is
// masked.
func TestLearned(t *testing.T) {
	band := func(change ...func(a *domain.LearnedAlgorithm)) map[string]domain.ScalingMetric {
		return map[string]domain.ScalingMetric{"cpu": learnedOf(qmodeltest.Band(0.3, 0.75), change...)}
	}
	perTotal := func(a *domain.LearnedAlgorithm) { a.Per, a.Capacity = domain.TargetTotal, 50 }
	load := func(value float64) func(s *Seen) {
		return func(s *Seen) { s.Metrics["cpu"] = Measurement{Value: value, At: noon} }
	}
	with := func(changes ...func(s *Seen)) func(s *Seen) {
		return func(s *Seen) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	needs := func(value float64, why string) func(s *Seen) {
		return func(s *Seen) {
			s.Guards = map[string]Measurement{domain.GuardAtLeast: {Value: value, At: noon, Why: why}}
		}
	}
	atLeast := func(p *domain.AutoscalingPolicy) {
		p.Guards.AtLeast = &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://kafka"}}
	}
	for name, test := range map[string]struct {
		metrics map[string]domain.ScalingMetric
		policy  func(p *domain.AutoscalingPolicy)
		seen    func(s *Seen)
		want    int
		says    string
	}{
		"above": {
			band(), nil, load(95), 5, "cpu: one more is worth 0.2, as many is worth 0, one fewer is worth 0",
		},
		"between": {
			band(), nil, load(50), 4, "cpu: one more is worth 0, as many is worth 0, one fewer is worth 0",
		},
		"below": {
			band(), nil, load(20), 3, "cpu: one more is worth 0, as many is worth 0, one fewer is worth 0.1",
		},
		"at the most": {
			band(), func(p *domain.AutoscalingPolicy) { p.Max = 4 }, load(95), 4,
			"one more is masked: max is 4, as many is worth 0",
		},
		"at the least": {
			band(), func(p *domain.AutoscalingPolicy) { p.Min = 4 }, load(20), 4, "one fewer is masked: min is 4",
		},
		"as many as needed": {
			band(), atLeast, with(load(20), needs(4, "")), 4, "one fewer is masked: at least 4 by guards.at_least",
		},
		"fewer are needed": {band(), atLeast, with(load(20), needs(3, "")), 3, "one fewer is worth 0.1"},
		"who knows how many": {
			band(), atLeast, with(load(20), needs(0, "404")), 4,
			"one fewer is masked: it is unknown how many are needed",
		},
		"a hook is at work": {
			band(), nil, with(load(95), func(s *Seen) { s.Busy = "a hook is at work" }), 4,
			"one more is masked: a hook is at work, as many is worth 0, one fewer is masked: a hook is at work",
		},
		"a total": {band(perTotal), nil, load(190), 5, "one more is worth 0.2"},
		"a total, while some start": {
			band(perTotal), nil, with(load(100), func(s *Seen) { s.Ready = 2 }), 5, "one more is worth 0.25",
		},
		"stale": {
			band(), nil, func(s *Seen) { s.Metrics["cpu"] = Measurement{Value: 95, At: noon.Add(-time.Hour)} }, 4,
			"stale",
		},
		"no number": {band(), nil, load(math.NaN()), 4, "not a number"},
		"all features": {
			allObserved(), nil, func(*Seen) {}, 5,
			"rate: one more is worth 1, as many is worth 0, one fewer is worth 0",
		},
		"one is missing": {
			allObserved(), nil, func(s *Seen) { delete(s.Metrics, "latency") }, 4,
			"rate: feature p99 (metric latency): not measured",
		},
		"one is stale": {
			allObserved(), nil, func(s *Seen) { s.Metrics["lag"] = Measurement{At: noon.Add(-time.Hour)} }, 4,
			"rate: feature lag_growth (metric lag): stale",
		},
		"data moves": {
			allObserved(), nil, func(s *Seen) { s.Metrics["moves"] = Measurement{Value: 3, At: noon} }, 4,
			"one more is masked: data is moving between members",
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(test.metrics)
			if test.policy != nil {
				test.policy(&policy)
			}
			seen := Seen{Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{}}
			for name := range test.metrics {
				seen.Metrics[name] = Measurement{Value: 0, At: noon}
			}
			test.seen(&seen)
			d := scalerOf(t, policy).Decide(&State{}, seen)
			if d.To != test.want || !strings.Contains(d.Why(), test.says) {
				t.Errorf("%d → %d: %s\nwant %d, and %q", d.From, d.To, d.Why(), test.want, test.says)
			}
		})
	}
}

// TestLearnedObserves checks that measurements, each in the unit of its metric, reach the model as the state that it
// was trained with.
func TestLearnedObserves(t *testing.T) {
	metrics := allObserved()
	in := asking{
		now: noon, count: 5, ready: 4, policy: &domain.AutoscalingPolicy{Max: 8}, lastChange: noon.Add(-time.Minute),
		metric: Measurement{Value: 1500, At: noon},
		observed: func(name string) (float64, string) {
			return map[string]float64{"cpu": 60, "latency": 0.05, "lag": 2000, "moves": 1, "skew": 0.4}[name], ""
		},
	}
	got, why := in.observation(*metrics["rate"].Algorithm.Learned)
	want := Observation{
		Now: noon, Count: 5, Ready: 4, Max: 8, Every: domain.DefaultScalingInterval, LastChange: noon.Add(-time.Minute),
		Load: 3, Lag: 4, CPU: 0.6, P99: 0.2, Skew: 0.4, Reassigning: true,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" || why != "" {
		t.Errorf("%q (-want +got)\n%s", why, diff)
	}
}

// TestLearnedInvalid checks that a policy whose model and metrics don't match is rejected.
func TestLearnedInvalid(t *testing.T) {
	with := func(change func(a *domain.LearnedAlgorithm)) map[string]domain.ScalingMetric {
		metrics := allObserved()
		change(metrics["rate"].Algorithm.Learned)
		return metrics
	}
	moves := qmodel.New(qmodel.DQN, []string{"load", "reassigning"})
	for name, test := range map[string]struct {
		metrics map[string]domain.ScalingMetric
		says    string
	}{
		"right": {allObserved(), ""},
		"no model": {
			with(func(a *domain.LearnedAlgorithm) { a.Model = domain.LearnedModel{} }),
			`metrics["rate"].algorithm.learned.model: the algorithm needs a model`,
		},
		"no text": {
			with(func(a *domain.LearnedAlgorithm) { a.Model.Text = "" }),
			`metrics["rate"].algorithm.learned.model: the model is not valid JSON`,
		},
		"an unknown feature": {
			with(func(a *domain.LearnedAlgorithm) { a.Observes["load"] = "cpu" }),
			`metrics["rate"].algorithm.learned.observes["load"]: "load" is not a feature computed from another metric`,
		},
		"an unknown metric": {
			with(func(a *domain.LearnedAlgorithm) { a.Observes["cpu"] = "disk" }),
			`metrics["rate"].algorithm.learned.observes["cpu"]: the policy has no metric "disk"; it has ["cpu" "lag" "latency" "moves" "rate" "skew"]`,
		},
		"its own metric": {
			with(func(a *domain.LearnedAlgorithm) { a.Observes["cpu"] = "rate" }),
			`"rate" is the metric with this algorithm`,
		},
		"a missing feature": {
			with(func(a *domain.LearnedAlgorithm) { delete(a.Observes, "skew") }),
			`metrics["rate"].algorithm.learned.observes: the model uses "skew" (how unevenly the load is spread`,
		},
		"no bound": {
			with(func(a *domain.LearnedAlgorithm) { a.LatencyBound = 0 }),
			`metrics["rate"].algorithm.learned.latency_bound: feature "p99" needs it: the latency that is allowed, in the unit of metric "latency"`,
		},
		"a bound below 0": {
			with(func(a *domain.LearnedAlgorithm) { a.LatencyBound = -1 }),
			`metrics["rate"].algorithm.learned.latency_bound: must be above 0, got -1`,
		},
		"no capacity of lag": {
			with(func(a *domain.LearnedAlgorithm) { a.Per = "" }),
			`metrics["rate"].algorithm.learned.lag_capacity: feature "lag_growth" needs it`,
		},
		"a feature that the model does not take": {
			map[string]domain.ScalingMetric{"rate": learnedOf(qmodeltest.Band(0.2, 0.8),
				func(a *domain.LearnedAlgorithm) { a.Observes = map[string]string{"cpu": "cpu"} }), "cpu": {}},
			`metrics["rate"].algorithm.learned.observes["cpu"]: the model does not use "cpu", so metric "cpu" would be observed for nothing; it uses ["load"]`,
		},
		"no hook that reports moves": {
			map[string]domain.ScalingMetric{"rate": learnedOf(moves)}, `the model uses "reassigning"`,
		},
		"a forecast": {map[string]domain.ScalingMetric{"rate": func() domain.ScalingMetric {
			m := learnedOf(qmodeltest.Band(0.2, 0.8))
			m.Forecast = &domain.Forecast{Lead: domain.Duration(time.Minute)}
			return m
		}()}, `metrics["rate"].forecast: algorithm learned already looks ahead`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Validate(policyOf(test.metrics)) {
				got = append(got, p.Path.String()+": "+p.Detail)
			}
			if text := strings.Join(got, "\n"); (test.says == "") != (text == "") ||
				!strings.Contains(text, test.says) {
				t.Errorf("%q is wrong, and not %q", got, test.says)
			}
		})
	}
	hooked := policyOf(map[string]domain.ScalingMetric{"rate": learnedOf(moves)})
	hooked.Hooks.AfterAddition = &domain.ScalingHook{URL: "http://rebalancer"}
	if err := Validate(hooked).Err(); err != nil {
		t.Errorf("with a hook that reports moves: %v", err)
	}
}

// TestBacktestLearned checks that in a backtest a model decides by what the simulation shows for each feature.
func TestBacktestLearned(t *testing.T) {
	metrics := allObserved()
	a := metrics["rate"].Algorithm.Learned
	// One more while the latency is above a tenth of the bound, as with the queue of an excessive load, and one fewer
	// otherwise.
	model := qmodel.New(qmodel.DQN, qmodel.FeatureNames())
	model.Layers[0].Weights[qmodel.P99] = 1
	model.Layers[1].Weights[0] = 1
	model.Layers[2].Weights[qmodel.Up*qmodel.Hidden] = 1
	model.Layers[2].Bias[qmodel.Down] = 0.1
	a.Model, a.Capacity, a.LatencyBound = domain.NewLearnedModel(qmodeltest.Text(model)), 50, 1
	policy := policyOf(metrics)
	policy.Interval = seconds(15)
	signals := map[string]Signal{
		"rate": SignalLoad, "cpu": SignalUtilisation, "latency": SignalLatency, "lag": SignalQueue,
		"moves": SignalChanging, "skew": SignalSkew,
	}
	trace := Trace{Start: noon, Step: time.Minute, Load: []float64{40, 40, 90, 90, 90, 90, 90, 90, 40, 40, 40, 40}}
	course, err := Backtest(policy, trace, Model{Capacity: 50, Startup: 30 * time.Second, Signals: signals})
	if err != nil {
		t.Fatal(err)
	}
	if course.Counts[2] != 1 || course.Counts[3] < 2 || course.Counts[len(course.Counts)-1] != 1 ||
		course.Reversals == 0 {
		t.Errorf("the counts are %v: %+v", course.Counts, course.Steps)
	}
}
