package domain

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func targetMetric(target TargetAlgorithm) ScalingMetric {
	return ScalingMetric{Algorithm: ScalingAlgorithm{Target: &target}}
}

// validPolicy is a valid policy that sets everything there is to set.
func validPolicy() AutoscalingPolicy {
	duration := func(d time.Duration) *Duration { return new(Duration(d)) }
	return AutoscalingPolicy{
		Cluster: "lab", Group: "serve", Role: "replica", Min: 1, Max: 8, Initial: new(2),
		Interval: duration(10 * time.Second),
		Metrics: map[string]ScalingMetric{
			"target": {
				Algorithm:  ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60, Per: TargetMean}},
				StaleAfter: duration(time.Second), OnMissing: MissingAsValue, MissingValue: new(0.0),
				Forecast: &Forecast{Lead: Duration(time.Hour), Season: duration(10 * time.Hour)},
			},
			"heat": {Algorithm: ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 50}}},
			"threshold": {Algorithm: ScalingAlgorithm{Threshold: &ThresholdAlgorithm{
				Lower: new(20.0), Upper: new(80.0), Samples: 3, StepOut: 2, StepInPercent: 100,
			}}},
			"queue": {
				Algorithm: ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 10, CoolDown: duration(0)}},
			},
			"marginal gain": {
				Algorithm: ScalingAlgorithm{
					MarginalGain: &MarginalGainAlgorithm{Threshold: 0.1, Settle: duration(time.Minute)},
				},
			},
			"risk": {Algorithm: ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: 20, Per: TargetTotal}}},
			"ratio": {
				Algorithm: ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend", Per: 0.5}}, OnMissing: MissingHold,
			},
			"external": {Algorithm: ScalingAlgorithm{External: &ExternalAlgorithm{
				ScalingHook{URL: "https://decider:8443/scale?as=json", Timeout: duration(5 * time.Minute)},
			}}},
		},
		Schedules: map[string]ScalingSchedule{
			"day": {Start: "0 8 * * *", End: "0 20 * * *", TimeZone: "Europe/Warsaw", Count: 4},
		},
		ScaleOut: ScalingBehaviour{Rates: []ScalingRate{
			{Count: 4, Period: Duration(15 * time.Second)}, {Percent: 200, Period: Duration(30 * time.Minute)},
		}, Select: SelectMin},
		ScaleIn: ScalingBehaviour{
			Stabilisation: duration(time.Hour), Tolerance: new(0.0), Cooldown: duration(time.Minute), MaxStep: 1,
		},
		Guards: ScalingGuards{
			Busy: &BusyGuard{
				GuardSource: GuardSource{
					Prometheus: &PrometheusSource{
						URL: "http://prometheus:9090/prometheus", Query: "metrics_master_apps_Value",
					}, HTTP: &HTTPQueue{URL: "http://spark-master-0:8080/json/", Path: "activeapps.#"},
				}, Pauses: PauseAll, CPUPercent: new(150.0), GPUPercent: new(100.0),
			},
			AtLeast: &GuardSource{HTTP: &HTTPQueue{URL: "http://front/replicas"}}, Remove: RemoveLeastBusy,
			MemberHoursPerDay: 0.5,
		},
		Hooks: ScalingHooks{
			BeforeRemoval: &ScalingHook{
				Command: []string{"/usr/local/bin/drain", ""}, Timeout: duration(100 * time.Millisecond),
			},
			AfterAddition: &ScalingHook{URL: "http://rebalancer:9090/came", Timeout: duration(7 * 24 * time.Hour)},
		},
		Vertical: &VerticalScaling{
			CPUs: &AmountBounds{Min: 0.01, Max: 8}, MemoryMiB: &AmountBounds{Min: 1, Max: 1}, Percentile: new(100.0),
			MarginPercent: new(0.0), LearnFor: duration(0), Apply: ApplyNever,
		},
		Paused: PauseIn, OnDestroy: OnDestroyRestore,
	}
}

func TestAutoscalingPolicyValidate(t *testing.T) {
	// with returns a valid policy with "m" as its only metric.
	with := func(change func(p *AutoscalingPolicy, m *ScalingMetric)) AutoscalingPolicy {
		p, m := validPolicy(), targetMetric(TargetAlgorithm{Value: 60})
		change(&p, &m)
		p.Metrics = map[string]ScalingMetric{"m": m}
		return p
	}
	policy := func(change func(p *AutoscalingPolicy)) AutoscalingPolicy {
		p := validPolicy()
		change(&p)
		return p
	}
	algorithm := func(a ScalingAlgorithm) AutoscalingPolicy {
		return with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.Algorithm = a })
	}
	asleep := func(schedules map[string]ScalingSchedule, a ScalingAlgorithm) AutoscalingPolicy {
		return with(func(p *AutoscalingPolicy, m *ScalingMetric) {
			p.Min, p.Schedules, p.Guards.AtLeast, m.Algorithm = 0, schedules, nil, a
		})
	}
	// sourced is asleep by a threshold, with this source.
	sourced := func(source ScalingSource, change func(m *ScalingMetric)) AutoscalingPolicy {
		return with(func(p *AutoscalingPolicy, m *ScalingMetric) {
			p.Min, p.Schedules, p.Guards.AtLeast = 0, nil, nil
			m.Algorithm, m.Source = ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0)}}, source
			change(m)
		})
	}
	agent := ScalingSource{Agent: &AgentSource{Measure: AgentCPUs, Of: AgentTotal}}
	progress := func(role string) ScalingSource {
		return ScalingSource{Progress: &ProgressSource{Pattern: "step", Role: role}}
	}
	asIs := func(*ScalingMetric) {}
	forecast := func(f Forecast) AutoscalingPolicy {
		return with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.Forecast = &f })
	}
	schedule := func(s ScalingSchedule) AutoscalingPolicy {
		return policy(func(p *AutoscalingPolicy) { p.Schedules = map[string]ScalingSchedule{"night": s} })
	}
	rate := func(r ScalingRate) AutoscalingPolicy {
		return policy(func(p *AutoscalingPolicy) {
			p.ScaleOut.Rates = []ScalingRate{{Count: 1, Period: Duration(time.Minute)}, r}
		})
	}
	guards := func(g ScalingGuards) AutoscalingPolicy { return policy(func(p *AutoscalingPolicy) { p.Guards = g }) }
	hooks := func(h ScalingHooks) AutoscalingPolicy { return policy(func(p *AutoscalingPolicy) { p.Hooks = h }) }
	minute := Duration(time.Minute)
	for name, test := range map[string]struct {
		policy AutoscalingPolicy
		// path is that of the only problem, and detail a part of its text; "" if there is none.
		path, detail string
	}{
		"all there is":            {policy(func(*AutoscalingPolicy) {}), "", ""},
		"only a metric":           {with(func(p *AutoscalingPolicy, _ *ScalingMetric) { p.Schedules = nil }), "", ""},
		"only a schedule":         {policy(func(p *AutoscalingPolicy) { p.Metrics = nil }), "", ""},
		"from none by a schedule": {policy(func(p *AutoscalingPolicy) { p.Min, p.Metrics = 0, nil }), "", ""},

		"no group": {policy(func(p *AutoscalingPolicy) { p.Group = "" }), "group", "a group needs a name"},
		"a bad role": {
			policy(func(p *AutoscalingPolicy) { p.Role = "Replica" }), "role", `"Replica" is not a DNS label`,
		},
		"min below 0": {
			policy(func(p *AutoscalingPolicy) { p.Min = -1 }), "min", "must be between 0 and 10000, got -1",
		},
		"max below min": {
			policy(func(p *AutoscalingPolicy) { p.Min, p.Max, p.Initial = 9, 8, nil; p.Schedules = nil }), "max",
			"must be between 9 (min) and 10000, got 8",
		},
		"max out of bounds": {
			policy(func(p *AutoscalingPolicy) { p.Max = 10_001 }), "max",
			"must be between 1 (min) and 10000, got 10001",
		},
		"initial below min": {
			policy(func(p *AutoscalingPolicy) { p.Initial = new(0) }), "initial",
			"must be between 1 (min) and 8 (max), got 0",
		},
		"initial above max": {
			policy(func(p *AutoscalingPolicy) { p.Initial = new(9) }), "initial",
			"must be between 1 (min) and 8 (max), got 9",
		},
		"a short interval": {
			policy(func(p *AutoscalingPolicy) { p.Interval = new(minute / 100) }), "interval",
			"must be between 1s and 1h0m0s, got 600ms",
		},
		"a long interval": {
			policy(func(p *AutoscalingPolicy) { p.Interval = new(61 * minute) }), "interval",
			"must be between 1s and 1h0m0s, got 1h1m0s",
		},
		"nothing to follow": {
			policy(func(p *AutoscalingPolicy) { p.Metrics, p.Schedules, p.Vertical = nil, nil, nil }), "metrics",
			"no metrics, schedules or vertical",
		},
		"only vertical": {policy(func(p *AutoscalingPolicy) { p.Metrics, p.Schedules = nil, nil }), "", ""},
		"a metric without a name": {
			policy(func(p *AutoscalingPolicy) { p.Metrics[""] = p.Metrics["queue"] }), `metrics[""]`,
			`must have 1 to 63 printable characters, got ""`,
		},
		"a schedule named as a metric": {
			policy(func(p *AutoscalingPolicy) { p.Schedules["queue"] = p.Schedules["day"] }), `schedules["queue"]`,
			`"queue" is also the name of a metric`,
		},
		"a schedule with lines": {
			policy(func(p *AutoscalingPolicy) { p.Schedules["a\nb"] = p.Schedules["day"] }), `schedules["a\nb"]`,
			`must have 1 to 63 printable characters, got "a\nb"`,
		},

		"an observed metric": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{StaleAfter: new(minute)} }), "", "",
		},
		"observed, beside a schedule": {algorithm(ScalingAlgorithm{}), "", ""},
		"observed, beside a schedule, from none": {
			asleep(map[string]ScalingSchedule{"s": {Start: "0 8 * * *", End: "0 9 * * *", Count: 1}},
				ScalingAlgorithm{}),
			"", "",
		},
		"observed alone": {
			with(func(p *AutoscalingPolicy, m *ScalingMetric) {
				p.Schedules, p.Vertical, m.Algorithm = nil, nil, ScalingAlgorithm{}
			}), "metrics",
			`["m"] have no algorithm: they are only observed, so the policy would never change the count; give one of them an algorithm, add a metric whose algorithm is external`,
		},
		"observed, too old": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{StaleAfter: new(Duration(1))} }),
			`metrics["seen"].stale_after`, "must be at least 1s, got 1ns",
		},
		"observed, with a rule": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{OnMissing: MissingMax} }),
			`metrics["seen"].on_missing`, "is only observed; leave on_missing out",
		},
		"observed, with a value": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{MissingValue: new(1.0)} }),
			`metrics["seen"].missing_value`, "leave missing_value out, or give the metric an algorithm",
		},
		"observed ahead": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{Forecast: &Forecast{Lead: minute}} }),
			`metrics["seen"].forecast`, "leave forecast out",
		},
		"two algorithms": {
			algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{Value: 1}, Queue: &QueueAlgorithm{PerMember: 1}}),
			`metrics["m"].algorithm`, `got ["target" "queue"]`,
		},
		"a target of 0": {
			algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{}}), `metrics["m"].algorithm.target.value`,
			"must be above 0, got 0",
		},
		"a target of NaN": {
			algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{Value: math.NaN()}}),
			`metrics["m"].algorithm.target.value`, "got NaN",
		},
		"an unknown per": {
			algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{Value: 1, Per: "max"}}),
			`metrics["m"].algorithm.target.per`, `unknown value "max"; use one of ["mean" "total"]`,
		},
		"heat upside down": {
			algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 80, Upper: 20, Target: 50}}),
			`metrics["m"].algorithm.heat.lower`, "lower (80) must be below upper (20)",
		},
		"heat below 0": {
			algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: -1, Upper: 20, Target: 10}}),
			`metrics["m"].algorithm.heat.lower`, "must be 0 or more, got -1",
		},
		"heat without end": {
			algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 1, Upper: math.Inf(1), Target: 10}}),
			`metrics["m"].algorithm.heat.upper`, "got +Inf",
		},
		"heat for nothing": {
			algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 0, Upper: 20}}),
			`metrics["m"].algorithm.heat.target`, "must be above 0, got 0",
		},
		"heat that stays": {
			algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 90}}),
			`metrics["m"].algorithm.heat.target`,
			"must be between 20 (lower) and 80 (upper), got 90: a count for that target would be changed again at once",
		},
		"heat at once": {
			algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 50, Recurrence: -1}}),
			`metrics["m"].algorithm.heat.recurrence`, "must be 1 or more, got -1",
		},
		"no thresholds": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{}}), `metrics["m"].algorithm.threshold`,
			"needs lower, upper or both",
		},
		"equal thresholds": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0), Upper: new(1.0)}}),
			`metrics["m"].algorithm.threshold.lower`, "lower (1) must be below upper (1)",
		},
		"a threshold of NaN": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(math.NaN())}}),
			`metrics["m"].algorithm.threshold.upper`, "must be 0 or more, got NaN",
		},
		"samples below 0": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), Samples: -2}}),
			`metrics["m"].algorithm.threshold.samples`, "must be 1 or more, got -2",
		},
		"a step backwards": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), StepOut: -1}}),
			`metrics["m"].algorithm.threshold.step_out`, "must be between 1 and 10000, got -1",
		},
		"a percentage of NaN": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), StepOutPercent: math.NaN()}}),
			`metrics["m"].algorithm.threshold.step_out_percent`, "must be 0 or more, got NaN",
		},
		"more than all": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0), StepInPercent: 101}}),
			`metrics["m"].algorithm.threshold.step_in_percent`, "must be between 0 and 100, got 101",
		},
		"a step never made": {
			algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0), StepOut: 2}}),
			`metrics["m"].algorithm.threshold.step_out`, "has no effect without upper",
		},
		"a queue of nobody": {
			algorithm(ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: -1}}),
			`metrics["m"].algorithm.queue.per_member`, "must be above 0, got -1",
		},
		"cooled down before": {
			algorithm(ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 1, CoolDown: new(-minute)}}),
			`metrics["m"].algorithm.queue.cool_down`, "must be at least 0s, got -1m0s",
		},
		"more than a gain": {
			algorithm(ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{Threshold: 10}}),
			`metrics["m"].algorithm.marginal_gain.threshold`, "must be between 0 and 1, got 10",
		},
		"a gain not measured": {
			algorithm(ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{Settle: new(Duration)}}),
			`metrics["m"].algorithm.marginal_gain.settle`, "must be positive, got 0s",
		},
		"a knee forgotten": {
			algorithm(ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{RetryAfter: new(-minute)}}),
			`metrics["m"].algorithm.marginal_gain.retry_after`, "must be positive, got -1m0s",
		},
		"a ratio to itself": {
			algorithm(ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "replica", Per: 1}}),
			`metrics["m"].algorithm.ratio.role`, `"replica" is the role that the policy scales`,
		},
		"a ratio to nobody": {
			algorithm(ScalingAlgorithm{Ratio: &RatioAlgorithm{Per: 1}}), `metrics["m"].algorithm.ratio.role`,
			"a role needs a name",
		},
		"no risk at all": {
			algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{}}), `metrics["m"].algorithm.risk.percent`,
			"must be between 0.1 and 50 percent of the time, such as 1, got 0",
		},
		"a risk of NaN": {
			algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: math.NaN()}}),
			`metrics["m"].algorithm.risk.percent`, "must be between 0.1 and 50 percent of the time, such as 1, got NaN",
		},
		"too much kept free": {
			algorithm(ScalingAlgorithm{IdleRoom: &IdleRoomAlgorithm{KeepFree: -1}}),
			`metrics["m"].algorithm.idle_room.keep_free`, "must be between 0 and 10000, got -1",
		},
		"too much of a risk": {
			algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 60}}), `metrics["m"].algorithm.risk.percent`,
			"must be between 0.1 and 50 percent of the time, such as 1, got 60",
		},
		"a risk of capacity": {
			algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: -1}}),
			`metrics["m"].algorithm.risk.capacity`, "must be above 0, got -1",
		},
		"a risk in a word": {
			algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Per: "max"}}),
			`metrics["m"].algorithm.risk.per`, `unknown value "max"`,
		},
		"a risk of a total": {
			algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Per: TargetTotal}}),
			`metrics["m"].algorithm.risk.capacity`, `per = "total" requires capacity`,
		},
		"nobody to ask": {
			algorithm(ScalingAlgorithm{External: &ExternalAlgorithm{}}), `metrics["m"].algorithm.external`,
			"either url or command is required",
		},
		"two to ask": {
			algorithm(ScalingAlgorithm{
				External: &ExternalAlgorithm{ScalingHook{URL: "http://a", Command: []string{"b"}}},
			}),
			`metrics["m"].algorithm.external`, "url and command are mutually exclusive",
		},
		"a ratio of 0": {
			algorithm(ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend"}}), `metrics["m"].algorithm.ratio.per`,
			"must be above 0, got 0",
		},

		"stale at once": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.StaleAfter = new(minute / 61) }),
			`metrics["m"].stale_after`, "must be at least 1s, got 983.606557ms",
		},
		"an unknown rule": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.OnMissing = "zero" }), `metrics["m"].on_missing`,
			`unknown rule "zero"; use one of ["hold" "min" "max" "value"]`,
		},
		"no value for missing ones": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.OnMissing = MissingAsValue }),
			`metrics["m"].missing_value`, "set missing_value to 0 or more",
		},
		"a value for nothing": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.MissingValue = new(1.5) }),
			`metrics["m"].missing_value`, `missing_value is 1.5, but on_missing = "hold" does not use it`,
		},
		"a missing value of infinity": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.OnMissing, m.MissingValue = MissingAsValue, new(math.Inf(1))
			}),
			`metrics["m"].missing_value`, "must be 0 or more, got +Inf",
		},
		"a lead back": {
			forecast(Forecast{Lead: -minute}), `metrics["m"].forecast.lead`,
			"must not be negative, got -1m0s; set the time that a member takes to start, or 0s to learn it",
		},
		"a lead learnt": {forecast(Forecast{Season: new(minute)}), "", ""},
		"no season": {
			forecast(Forecast{Season: new(Duration)}), `metrics["m"].forecast.season`,
			"must be positive, such as 24h for a day, got 0s",
		},
		"a short season": {
			forecast(Forecast{Lead: minute, Season: new(9 * minute)}), `metrics["m"].forecast.season`,
			"9m0s is too short for a lead of 1m0s; it must be at least 10 times",
		},
		"a forecast of others": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{
					Ratio: &RatioAlgorithm{Role: "frontend", Per: 1},
				}, &Forecast{Lead: minute}
			}), `metrics["m"].forecast`, "can't be forecast",
		},
		"a forecast of room": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{IdleRoom: &IdleRoomAlgorithm{}}, &Forecast{}
			}), `metrics["m"].forecast`, "algorithm idle_room uses the room available now",
		},
		"a forecast for a risk": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1}}, &Forecast{Lead: minute}
			}), `metrics["m"].forecast`, "algorithm risk already looks ahead",
		},
		"a forecast for a program": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{
					External: &ExternalAlgorithm{ScalingHook{URL: "http://a"}},
				}, &Forecast{Lead: minute}
			}), `metrics["m"].forecast`, "may forecast by itself",
		},

		"no start": {
			schedule(ScalingSchedule{End: "0 8 * * *", Count: 2}), `schedules["night"].start`,
			`must be a cron expression, such as "0 8 * * MON-FRI", got ""`,
		},
		"no end": {
			schedule(ScalingSchedule{Start: "0 8 * * *", End: " ", Count: 2}), `schedules["night"].end`,
			`must be a cron expression, such as "0 8 * * MON-FRI", got " "`,
		},
		"an end at the start": {
			schedule(ScalingSchedule{Start: "0 8 * * *", End: "0 8 * * *", Count: 2}), `schedules["night"].end`,
			`are both "0 8 * * *"`,
		},
		"too few by schedule": {
			schedule(ScalingSchedule{Start: "0 8 * * *", End: "0 9 * * *"}), `schedules["night"].count`,
			"must be between 1 (min) and 8 (max), got 0",
		},
		"too many": {
			schedule(ScalingSchedule{Start: "0 8 * * *", End: "0 9 * * *", Count: 9}), `schedules["night"].count`,
			"must be between 1 (min) and 8 (max), got 9",
		},

		"a tolerance of all": {
			policy(func(p *AutoscalingPolicy) { p.ScaleIn.Tolerance = new(1.0) }), "scale_in.tolerance",
			"must be at least 0 and below 1, such as 0.1 for 10 %, got 1",
		},
		"no tolerance": {
			policy(func(p *AutoscalingPolicy) { p.ScaleOut.Tolerance = new(math.NaN()) }), "scale_out.tolerance",
			"must be at least 0 and below 1, such as 0.1 for 10 %, got NaN",
		},
		"a long window": {
			policy(func(p *AutoscalingPolicy) { p.ScaleOut.Stabilisation = new(61 * minute) }),
			"scale_out.stabilisation_window", "must be between 0s and 1h0m0s, got 1h1m0s",
		},
		"a window ahead": {
			policy(func(p *AutoscalingPolicy) { p.ScaleIn.Stabilisation = new(-minute) }),
			"scale_in.stabilisation_window", "must be between 0s and 1h0m0s, got -1m0s",
		},
		"cooled before": {
			policy(func(p *AutoscalingPolicy) { p.ScaleIn.Cooldown = new(-minute) }), "scale_in.cooldown",
			"must be at least 0s, got -1m0s",
		},
		"a negative step": {
			policy(func(p *AutoscalingPolicy) { p.ScaleIn.MaxStep = -1 }), "scale_in.max_step",
			"must be between 1 and 10000, or 0 for no limit, got -1",
		},
		"a step without end": {
			policy(func(p *AutoscalingPolicy) { p.ScaleOut.MaxStep = math.MaxInt }), "scale_out.max_step",
			"must be between 1 and 10000, or 0 for no limit, got 9223372036854775807",
		},
		"the largest step": {policy(func(p *AutoscalingPolicy) { p.ScaleOut.MaxStep = MaxReplicas }), "", ""},
		"an unknown select": {
			policy(func(p *AutoscalingPolicy) { p.ScaleOut.Select = "Max" }), "scale_out.select",
			`unknown rule "Max"; use one of ["max" "min" "disabled"]`,
		},
		"an empty rate": {
			rate(ScalingRate{Period: minute}), "scale_out.rates[1]", "a rate needs a count or a percent above 0",
		},
		"a rate twice": {
			rate(ScalingRate{Count: 1, Percent: 10, Period: minute}), "scale_out.rates[1]",
			"count (1) and percent (10) are mutually exclusive",
		},
		"a negative rate": {
			rate(ScalingRate{Count: -1, Period: minute}), "scale_out.rates[1].count", "must be 1 or more, got -1",
		},
		"a rate of NaN": {
			rate(ScalingRate{Percent: math.NaN(), Period: minute}), "scale_out.rates[1].percent",
			"must be above 0, got NaN",
		},
		"a rate of no time": {
			rate(ScalingRate{Count: 1}), "scale_out.rates[1].period", "must be between 1s and 30m0s, got 0s",
		},
		"a rate of an hour": {
			rate(ScalingRate{Count: 1, Period: 60 * minute}), "scale_out.rates[1].period",
			"must be between 1s and 30m0s, got 1h0m0s",
		},

		"an unknown pause": {
			policy(func(p *AutoscalingPolicy) { p.Paused = "both" }), "paused",
			`unknown value "both"; use one of ["none" "all" "out" "in"]`,
		},
		"an unknown end": {
			policy(func(p *AutoscalingPolicy) { p.OnDestroy = "delete" }), "on_destroy",
			`use one of ["keep" "restore" "min"]`,
		},
		"a hook at no URL": {
			hooks(ScalingHooks{BeforeRemoval: &ScalingHook{URL: "rebalancer/removals"}}),
			"hooks.before_removal.url", `"rebalancer/removals" is not a valid URL`,
		},
		"no sign of work": {
			guards(ScalingGuards{Busy: &BusyGuard{}}), "guards.busy",
			"needs at least one of prometheus, http, cpu_percent and gpu_percent",
		},
		"busy for nobody": {
			guards(ScalingGuards{Busy: &BusyGuard{
				GuardSource: GuardSource{Prometheus: &PrometheusSource{URL: "http://prometheus:9090", Query: " "}},
			}}),
			"guards.busy.prometheus.query",
			`must be a PromQL query that returns one value, such as "sum(rate(requests_total[1m]))", got " "`,
		},
		"busy by no URL": {
			guards(ScalingGuards{Busy: &BusyGuard{GuardSource: GuardSource{HTTP: &HTTPQueue{URL: "spark"}}}}),
			"guards.busy.http.url", `"spark" is not a valid URL`,
		},
		"busy for out": {
			guards(ScalingGuards{Busy: &BusyGuard{CPUPercent: new(1.0), Pauses: PauseOut}}), "guards.busy.pauses",
			`unknown value "out"; use one of ["in" "all"]`,
		},
		"busy for all": {
			guards(ScalingGuards{Busy: &BusyGuard{CPUPercent: new(1.0), Pauses: PauseAll}}), "guards.busy.pauses",
			"needs a signal for all members, prometheus or http",
		},
		"at least nothing": {
			guards(ScalingGuards{AtLeast: &GuardSource{}}), "guards.at_least",
			"exactly one of prometheus and http is required",
		},
		"at least two": {
			guards(ScalingGuards{AtLeast: &GuardSource{
				HTTP: &HTTPQueue{URL: "http://a"}, Prometheus: &PrometheusSource{URL: "http://b", Query: "up"},
			}}), "guards.at_least", "exactly one of prometheus and http is required",
		},
		"at least a secret": {
			guards(ScalingGuards{AtLeast: &GuardSource{HTTP: &HTTPQueue{URL: "http://a:b@c"}}}),
			"guards.at_least.http.url", "the URL must not contain a user or password",
		},
		"busy by idling": {
			guards(ScalingGuards{Busy: &BusyGuard{CPUPercent: new(0.0)}}), "guards.busy.cpu_percent",
			"must be above 0, got 0",
		},
		"busier than all": {
			guards(ScalingGuards{Busy: &BusyGuard{GPUPercent: new(101.0)}}), "guards.busy.gpu_percent",
			"must be above 0 and at most 100, got 101",
		},
		"busy by NaN": {
			guards(ScalingGuards{Busy: &BusyGuard{GPUPercent: new(math.NaN())}}), "guards.busy.gpu_percent", "got NaN",
		},
		"an unknown order": {
			guards(ScalingGuards{Remove: "oldest"}), "guards.remove",
			`use one of ["highest_index" "least_busy" "most_loaded_host"]`,
		},
		"a budget of NaN": {
			guards(ScalingGuards{MemberHoursPerDay: math.NaN()}), "guards.member_hours_per_day",
			"must be 0 or more, got NaN",
		},
		"a budget below 0": {guards(ScalingGuards{MemberHoursPerDay: -1}), "guards.member_hours_per_day", "got -1"},
		"a hook in no time": {
			hooks(ScalingHooks{BeforeRemoval: &ScalingHook{URL: "http://a", Timeout: new(minute / 601)}}),
			"hooks.before_removal.timeout", "must be between 100ms and 168h0m0s, got 99.83361ms",
		},
		"a hook for a month": {
			hooks(ScalingHooks{AfterAddition: &ScalingHook{URL: "http://a", Timeout: new(30 * 24 * 60 * minute)}}),
			"hooks.after_addition.timeout", "got 720h0m0s",
		},
		"a hook without words": {
			hooks(ScalingHooks{AfterAddition: &ScalingHook{Command: []string{}}}), "hooks.after_addition.command",
			"must be the name or path of a program, followed by its arguments, got []",
		},
		"a hook for nobody": {
			hooks(ScalingHooks{BeforeRemoval: &ScalingHook{}}), "hooks.before_removal",
			"either url or command is required",
		},
		"a decision in an hour": {with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
			m.Algorithm = ScalingAlgorithm{
				External: &ExternalAlgorithm{ScalingHook{URL: "http://a", Timeout: new(60 * minute)}},
			}
		}), `metrics["m"].algorithm.external.timeout`, "must be between 100ms and 5m0s, got 1h0m0s"},

		"asleep by the mean": {
			asleep(nil, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60}}), "min",
			`once there are no members, ["m"] would never ask for any`,
		},
		"asleep by heat": {
			asleep(nil, ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 50}}), "min",
			"set min to 1 or more, set on_missing",
		},
		"woken by room": {asleep(nil, ScalingAlgorithm{IdleRoom: &IdleRoomAlgorithm{}}), "", ""},
		"asleep by risk": {
			asleep(nil, ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1}}), "min", "min is 0",
		},
		"woken by risk": {
			asleep(nil, ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: 20, Per: TargetTotal}}), "", "",
		},
		"asleep by gain": {
			asleep(nil, ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{}}), "min", "min is 0",
		},
		"asleep by a lower bound": {
			asleep(nil, ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0)}}), "min",
			`set on_missing = "max", or add guards.at_least, a schedule that asks for 1 or more`,
		},
		"asleep, never asked to run": {asleep(map[string]ScalingSchedule{"s": {Start: "0 8 * * *", End: "0 9 * * *"}},
			ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60}}), "min", "min is 0"},
		"woken by the total": {
			asleep(nil, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60, Per: TargetTotal}}), "", "",
		},
		"woken by a queue": {asleep(nil, ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 1}}), "", ""},
		"woken by a program": {
			asleep(nil, ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{Command: []string{"decide"}}}}), "",
			"",
		},
		"woken by a ratio": {
			asleep(nil, ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend", Per: 1}}), "", "",
		},
		"woken by an upper bound": {
			asleep(nil, ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0)}}), "", "",
		},
		"woken by a percentage": {
			asleep(nil, ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), StepOutPercent: 50}}), "", "",
		},
		"woken by what is missing": {
			with(func(p *AutoscalingPolicy, m *ScalingMetric) { p.Min, p.Schedules, m.OnMissing = 0, nil, MissingMax }),
			"", "",
		},
		"asleep by what is missing": {
			sourced(agent, func(m *ScalingMetric) { m.OnMissing = MissingMin }), "min", "min is 0",
		},
		"asleep by what agents measure": {
			sourced(agent, asIs), "min", `whose source is neither agent nor the progress of role "replica"`,
		},
		"asleep by its own progress":     {sourced(progress(""), asIs), "min", "min is 0"},
		"asleep by its progress by name": {sourced(progress("replica"), asIs), "min", "min is 0"},
		"woken by another's progress":    {sourced(progress("frontend"), asIs), "", ""},
		"woken by a query": {
			sourced(ScalingSource{Prometheus: &PrometheusSource{URL: "http://p:9090", Query: "up"}}, asIs), "", "",
		},
		"woken by agents that measure nothing": {
			sourced(agent, func(m *ScalingMetric) { m.OnMissing = MissingMax }), "", "",
		},
		"woken by a value for nothing": {
			sourced(agent, func(m *ScalingMetric) { m.OnMissing, m.MissingValue = MissingAsValue, new(2.0) }), "", "",
		},
		"woken by a guard": {
			with(func(p *AutoscalingPolicy, _ *ScalingMetric) { p.Min, p.Schedules = 0, nil }), "", "",
		},
		"woken by a schedule": {
			asleep(map[string]ScalingSchedule{"s": {Start: "0 8 * * *", End: "0 9 * * *", Count: 1}},
				ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60}}), "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ps := test.policy.Validate()
			if test.path == "" {
				if len(ps) > 0 {
					t.Errorf("problems of a policy without any:\n%v", ps)
				}
				return
			}
			if len(ps) != 1 {
				t.Fatalf("%d problems, want one at %s:\n%v", len(ps), test.path, ps)
			}
			if got := ps[0].Path.String(); got != test.path {
				t.Errorf("the path is %s, want %s", got, test.path)
			}
			if !strings.Contains(ps[0].Detail, test.detail) {
				t.Errorf("the detail is %q, want one with %q", ps[0].Detail, test.detail)
			}
			if ps[0].Warning || ps[0].Summary == "" || strings.Contains(ps[0].Detail, "%!") {
				t.Errorf("the problem is %#v", ps[0])
			}
		})
	}
}

// TestAutoscalingPolicyValidateReportsAll checks that all faults are reported at once, and in the same order each time.
func TestAutoscalingPolicyValidateReportsAll(t *testing.T) {
	p := AutoscalingPolicy{
		Min: 3, Max: 2,
		Metrics:   map[string]ScalingMetric{"b": {OnMissing: MissingMax}, "a": targetMetric(TargetAlgorithm{})},
		Schedules: map[string]ScalingSchedule{"s": {Count: 2}},
	}
	want := `[group role max metrics["a"].algorithm.target.value metrics["b"].on_missing schedules["s"].start schedules["s"].end schedules["s"].count]`
	for range 20 {
		var paths []string
		for _, problem := range p.Validate() {
			paths = append(paths, problem.Path.String())
		}
		if got := fmt.Sprint(paths); got != want {
			t.Fatalf("paths of the problems are\n%s, want\n%s", got, want)
		}
	}
}
