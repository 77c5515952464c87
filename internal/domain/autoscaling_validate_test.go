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
		Cluster: "lab", Group: "serve", Role: "replica", Min: 1, Max: 8, Initial: new(2), Interval: duration(10 * time.Second),
		Metrics: map[string]ScalingMetric{
			"target": {
				Algorithm:  ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60, Per: TargetMean}},
				StaleAfter: duration(time.Second), OnMissing: MissingAsValue, MissingValue: new(0.0),
				Forecast: &Forecast{Lead: Duration(time.Hour), Season: duration(10 * time.Hour)},
			},
			"heat":          {Algorithm: ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 50}}},
			"threshold":     {Algorithm: ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(20.0), Upper: new(80.0), Samples: 3, StepOut: 2, StepInPercent: 100}}},
			"queue":         {Algorithm: ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 10, CoolDown: duration(0)}}},
			"marginal gain": {Algorithm: ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{Threshold: 0.1, Settle: duration(time.Minute)}}},
			"risk":          {Algorithm: ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: 20, Per: TargetTotal}}},
			"ratio":         {Algorithm: ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend", Per: 0.5}}, OnMissing: MissingHold},
			"external":      {Algorithm: ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{URL: "https://decider:8443/scale?as=json", Timeout: duration(5 * time.Minute)}}}},
		},
		Schedules: map[string]ScalingSchedule{"day": {Start: "0 8 * * *", End: "0 20 * * *", TimeZone: "Europe/Warsaw", Count: 4}},
		ScaleOut:  ScalingBehaviour{Rates: []ScalingRate{{Count: 4, Period: Duration(15 * time.Second)}, {Percent: 200, Period: Duration(30 * time.Minute)}}, Select: SelectMin},
		ScaleIn:   ScalingBehaviour{Stabilisation: duration(time.Hour), Tolerance: new(0.0), Cooldown: duration(time.Minute), MaxStep: 1},
		Guards: ScalingGuards{
			Busy: &BusyGuard{
				GuardSource: GuardSource{
					Prometheus: &PrometheusSource{URL: "http://prometheus:9090/prometheus", Query: "metrics_master_apps_Value"}, HTTP: &HTTPQueue{URL: "http://spark-master-0:8080/json/", Path: "activeapps.#"},
				}, Pauses: PauseAll, CPUPercent: new(150.0), GPUPercent: new(100.0),
			},
			AtLeast: &GuardSource{HTTP: &HTTPQueue{URL: "http://front/replicas"}}, Remove: RemoveLeastBusy, MemberHoursPerDay: 0.5,
		},
		Hooks: ScalingHooks{
			BeforeRemoval: &ScalingHook{Command: []string{"/usr/local/bin/drain", ""}, Timeout: duration(100 * time.Millisecond)},
			AfterAddition: &ScalingHook{URL: "http://rebalancer:9090/came", Timeout: duration(7 * 24 * time.Hour)},
		},
		Vertical: &VerticalScaling{
			CPUs: &AmountBounds{Min: 0.01, Max: 8}, MemoryMiB: &AmountBounds{Min: 1, Max: 1}, Percentile: new(100.0), MarginPercent: new(0.0), LearnFor: duration(0), Apply: ApplyNever,
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
		return with(func(p *AutoscalingPolicy, m *ScalingMetric) { p.Min, p.Schedules, m.Algorithm = 0, schedules, a })
	}
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

		"no group":          {policy(func(p *AutoscalingPolicy) { p.Group = "" }), "group", "a group needs a name"},
		"a bad role":        {policy(func(p *AutoscalingPolicy) { p.Role = "Replica" }), "role", `"Replica" is not a DNS label`},
		"min below 0":       {policy(func(p *AutoscalingPolicy) { p.Min = -1 }), "min", "-1; 0 to 10000 are allowed"},
		"max below min":     {policy(func(p *AutoscalingPolicy) { p.Min, p.Max, p.Initial = 9, 8, nil; p.Schedules = nil }), "max", "max is 8; 9, which is min, to 10000"},
		"max out of bounds": {policy(func(p *AutoscalingPolicy) { p.Max = 10_001 }), "max", "max is 10001; 1, which is min, to 10000"},
		"initial below min": {policy(func(p *AutoscalingPolicy) { p.Initial = new(0) }), "initial", "initial is 0; 1 to 8, which are min and max, are allowed"},
		"initial above max": {policy(func(p *AutoscalingPolicy) { p.Initial = new(9) }), "initial", "initial is 9; 1 to 8"},
		"a short interval":  {policy(func(p *AutoscalingPolicy) { p.Interval = new(minute / 100) }), "interval", "600ms is not allowed here; 1s to 1h0m0s is"},
		"a long interval":   {policy(func(p *AutoscalingPolicy) { p.Interval = new(61 * minute) }), "interval", "1h1m0s is not allowed here; 1s to 1h0m0s is"},
		"nothing to follow": {policy(func(p *AutoscalingPolicy) { p.Metrics, p.Schedules, p.Vertical = nil, nil, nil }), "metrics", "neither metrics nor schedules nor vertical"},
		"only vertical":     {policy(func(p *AutoscalingPolicy) { p.Metrics, p.Schedules = nil, nil }), "", ""},
		"a metric without a name": {
			policy(func(p *AutoscalingPolicy) { p.Metrics[""] = p.Metrics["queue"] }), `metrics[""]`, `"" is not a name; 1 to 63 printable`,
		},
		"a schedule with lines": {
			policy(func(p *AutoscalingPolicy) { p.Schedules["a\nb"] = p.Schedules["day"] }), `schedules["a\nb"]`, `"a\nb" is not a name; 1 to 63 printable`,
		},

		"an observed metric":                     {policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{StaleAfter: new(minute)} }), "", ""},
		"observed, beside a schedule":            {algorithm(ScalingAlgorithm{}), "", ""},
		"observed, beside a schedule, from none": {asleep(map[string]ScalingSchedule{"s": {Start: "0 8 * * *", End: "0 9 * * *", Count: 1}}, ScalingAlgorithm{}), "", ""},
		"observed alone": {
			with(func(p *AutoscalingPolicy, m *ScalingMetric) {
				p.Schedules, p.Vertical, m.Algorithm = nil, nil, ScalingAlgorithm{}
			}), "metrics",
			`["m"] have no algorithm: they are observed and ask for nothing, and the policy would never change the count; give one of them an algorithm, add a metric whose algorithm is external`,
		},
		"observed, too old": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{StaleAfter: new(Duration(1))} }), `metrics["seen"].stale_after`, "1ns is not allowed here; 1s or more",
		},
		"observed, with a rule": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{OnMissing: MissingMax} }), `metrics["seen"].on_missing`, "is observed and asks for nothing, whatever its value; leave on_missing out",
		},
		"observed, with a value": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{MissingValue: new(1.0)} }), `metrics["seen"].missing_value`, "leave missing_value out, or give the metric an algorithm",
		},
		"observed ahead": {
			policy(func(p *AutoscalingPolicy) { p.Metrics["seen"] = ScalingMetric{Forecast: &Forecast{Lead: minute}} }), `metrics["seen"].forecast`, "leave forecast out",
		},
		"two algorithms": {
			algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{Value: 1}, Queue: &QueueAlgorithm{PerMember: 1}}), `metrics["m"].algorithm`, `["target" "queue"] are given`,
		},
		"a target of 0":       {algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{}}), `metrics["m"].algorithm.target.value`, "0 is not allowed here; any number above 0"},
		"a target of NaN":     {algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{Value: math.NaN()}}), `metrics["m"].algorithm.target.value`, "NaN is not allowed"},
		"an unknown per":      {algorithm(ScalingAlgorithm{Target: &TargetAlgorithm{Value: 1, Per: "max"}}), `metrics["m"].algorithm.target.per`, `"max" is nothing that a target is compared with; there are ["mean" "total"]`},
		"heat upside down":    {algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 80, Upper: 20, Target: 50}}), `metrics["m"].algorithm.heat.lower`, "lower is 80 and upper 20"},
		"heat below 0":        {algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: -1, Upper: 20, Target: 10}}), `metrics["m"].algorithm.heat.lower`, "-1 is not allowed here; 0 or more is"},
		"heat without end":    {algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 1, Upper: math.Inf(1), Target: 10}}), `metrics["m"].algorithm.heat.upper`, "+Inf is not allowed"},
		"heat for nothing":    {algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 0, Upper: 20}}), `metrics["m"].algorithm.heat.target`, "0 is not allowed here; any number above 0"},
		"heat that stays":     {algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 90}}), `metrics["m"].algorithm.heat.target`, "the target is 90, and a count made for it would be changed again at once; 20 to 80"},
		"heat at once":        {algorithm(ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 50, Recurrence: -1}}), `metrics["m"].algorithm.heat.recurrence`, "-1 is not a number of decisions; 1 or more"},
		"no thresholds":       {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{}}), `metrics["m"].algorithm.threshold`, "needs lower, upper or both"},
		"equal thresholds":    {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0), Upper: new(1.0)}}), `metrics["m"].algorithm.threshold.lower`, "lower is 1 and upper 1; lower below upper"},
		"a threshold of NaN":  {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(math.NaN())}}), `metrics["m"].algorithm.threshold.upper`, "NaN is not allowed here; 0 or more"},
		"samples below 0":     {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), Samples: -2}}), `metrics["m"].algorithm.threshold.samples`, "-2 is not a number of decisions"},
		"a step backwards":    {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), StepOut: -1}}), `metrics["m"].algorithm.threshold.step_out`, "-1 is not a number of members to add or remove; 1 to 10000"},
		"a percentage of NaN": {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), StepOutPercent: math.NaN()}}), `metrics["m"].algorithm.threshold.step_out_percent`, "NaN is not allowed here; 0 or more"},
		"more than all":       {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0), StepInPercent: 101}}), `metrics["m"].algorithm.threshold.step_in_percent`, "101 is not allowed here; 0 to 100 is"},
		"a step never made":   {algorithm(ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0), StepOut: 2}}), `metrics["m"].algorithm.threshold.step_out`, "never made without upper"},
		"a queue of nobody":   {algorithm(ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: -1}}), `metrics["m"].algorithm.queue.per_member`, "-1 is not allowed here; any number above 0"},
		"cooled down before":  {algorithm(ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 1, CoolDown: new(-minute)}}), `metrics["m"].algorithm.queue.cool_down`, "-1m0s is not allowed here; 0s or more is"},
		"more than a gain":    {algorithm(ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{Threshold: 10}}), `metrics["m"].algorithm.marginal_gain.threshold`, "10 is not allowed here; 0 to 1 is"},
		"a gain not measured": {algorithm(ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{Settle: new(Duration)}}), `metrics["m"].algorithm.marginal_gain.settle`, "0s is no time to wait; more than 0s"},
		"a knee forgotten":    {algorithm(ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{RetryAfter: new(-minute)}}), `metrics["m"].algorithm.marginal_gain.retry_after`, "-1m0s is no time to wait"},
		"a ratio to itself":   {algorithm(ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "replica", Per: 1}}), `metrics["m"].algorithm.ratio.role`, `"replica" is the role that the policy is for`},
		"a ratio to nobody":   {algorithm(ScalingAlgorithm{Ratio: &RatioAlgorithm{Per: 1}}), `metrics["m"].algorithm.ratio.role`, "a role needs a name"},
		"no risk at all":      {algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{}}), `metrics["m"].algorithm.risk.percent`, "0 % of the time is not allowed here; 0.1 to 50 is, such as 1"},
		"a risk of NaN":       {algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: math.NaN()}}), `metrics["m"].algorithm.risk.percent`, "NaN % of the time is not allowed"},
		"too much kept free":  {algorithm(ScalingAlgorithm{IdleRoom: &IdleRoomAlgorithm{KeepFree: -1}}), `metrics["m"].algorithm.idle_room.keep_free`, "room for -1 members can't be kept free; 0 to"},
		"too much of a risk":  {algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 60}}), `metrics["m"].algorithm.risk.percent`, "60 % of the time is not allowed here; 0.1 to 50"},
		"a risk of capacity":  {algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: -1}}), `metrics["m"].algorithm.risk.capacity`, "-1 is not allowed here; any number above 0"},
		"a risk in a word":    {algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Per: "max"}}), `metrics["m"].algorithm.risk.per`, `"max" is nothing that a target is compared with`},
		"a risk of a total":   {algorithm(ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Per: TargetTotal}}), `metrics["m"].algorithm.risk.capacity`, `per = "total" needs to know how much of the metric one member carries`},
		"nobody to ask":       {algorithm(ScalingAlgorithm{External: &ExternalAlgorithm{}}), `metrics["m"].algorithm.external`, "neither url nor command is given"},
		"two to ask":          {algorithm(ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{URL: "http://a", Command: []string{"b"}}}}), `metrics["m"].algorithm.external`, "url and command are both given"},
		"a ratio of 0":        {algorithm(ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend"}}), `metrics["m"].algorithm.ratio.per`, "0 is not allowed here; any number above 0"},

		"stale at once": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.StaleAfter = new(minute / 61) }), `metrics["m"].stale_after`, "983.606557ms is not allowed here; 1s or more",
		},
		"an unknown rule": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.OnMissing = "zero" }), `metrics["m"].on_missing`, `"zero" is not a rule about missing values; there are ["hold" "min" "max" "value"]`,
		},
		"no value for missing ones": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.OnMissing = MissingAsValue }), `metrics["m"].missing_value`, "set missing_value to 0 or more",
		},
		"a value for nothing": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) { m.MissingValue = new(1.5) }), `metrics["m"].missing_value`, `missing_value is 1.5, and on_missing = "hold" does not use it`,
		},
		"a missing value of infinity": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.OnMissing, m.MissingValue = MissingAsValue, new(math.Inf(1))
			}),
			`metrics["m"].missing_value`, "+Inf is not allowed here; 0 or more",
		},
		"a lead back":    {forecast(Forecast{Lead: -minute}), `metrics["m"].forecast.lead`, "-1m0s is not ahead; more than 0s is allowed, such as the time that a member takes to start, or 0s to have that learnt"},
		"a lead learnt":  {forecast(Forecast{Season: new(minute)}), "", ""},
		"no season":      {forecast(Forecast{Season: new(Duration)}), `metrics["m"].forecast.season`, "0s is no length of time; more than 0s"},
		"a short season": {forecast(Forecast{Lead: minute, Season: new(9 * minute)}), `metrics["m"].forecast.season`, "9m0s is too short for a lead of 1m0s; 10 times"},
		"a forecast of others": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend", Per: 1}}, &Forecast{Lead: minute}
			}), `metrics["m"].forecast`, "there is no forecast",
		},
		"a forecast of room": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{IdleRoom: &IdleRoomAlgorithm{}}, &Forecast{}
			}), `metrics["m"].forecast`, "algorithm idle_room takes the room that there is now",
		},
		"a forecast for a risk": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1}}, &Forecast{Lead: minute}
			}), `metrics["m"].forecast`, "algorithm risk looks ahead by itself",
		},
		"a forecast for a program": {
			with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
				m.Algorithm, m.Forecast = ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{URL: "http://a"}}}, &Forecast{Lead: minute}
			}), `metrics["m"].forecast`, "looks ahead by itself",
		},

		"no start":            {schedule(ScalingSchedule{End: "0 8 * * *", Count: 2}), `schedules["night"].start`, `a schedule needs its start, which is ""`},
		"no end":              {schedule(ScalingSchedule{Start: "0 8 * * *", End: " ", Count: 2}), `schedules["night"].end`, `a schedule needs its end, which is " "`},
		"an end at the start": {schedule(ScalingSchedule{Start: "0 8 * * *", End: "0 8 * * *", Count: 2}), `schedules["night"].end`, `are both "0 8 * * *"`},
		"too few by schedule": {schedule(ScalingSchedule{Start: "0 8 * * *", End: "0 9 * * *"}), `schedules["night"].count`, "asks for 0; 1 to 8, which are min and max, are allowed"},
		"too many":            {schedule(ScalingSchedule{Start: "0 8 * * *", End: "0 9 * * *", Count: 9}), `schedules["night"].count`, "asks for 9; 1 to 8"},

		"a tolerance of all": {policy(func(p *AutoscalingPolicy) { p.ScaleIn.Tolerance = new(1.0) }), "scale_in.tolerance", "1 is not a share to miss a target by; 0 to below 1"},
		"no tolerance":       {policy(func(p *AutoscalingPolicy) { p.ScaleOut.Tolerance = new(math.NaN()) }), "scale_out.tolerance", "NaN is not a share"},
		"a long window":      {policy(func(p *AutoscalingPolicy) { p.ScaleOut.Stabilisation = new(61 * minute) }), "scale_out.stabilisation_window", "1h1m0s is not allowed here; 0s to 1h0m0s is"},
		"a window ahead":     {policy(func(p *AutoscalingPolicy) { p.ScaleIn.Stabilisation = new(-minute) }), "scale_in.stabilisation_window", "-1m0s is not allowed here; 0s to 1h0m0s"},
		"cooled before":      {policy(func(p *AutoscalingPolicy) { p.ScaleIn.Cooldown = new(-minute) }), "scale_in.cooldown", "-1m0s is not allowed here; 0s or more"},
		"a negative step":    {policy(func(p *AutoscalingPolicy) { p.ScaleIn.MaxStep = -1 }), "scale_in.max_step", "-1 is not a number of members to add or remove; 1 to 10000 are allowed, and 0 sets no bound"},
		"a step without end": {policy(func(p *AutoscalingPolicy) { p.ScaleOut.MaxStep = math.MaxInt }), "scale_out.max_step", "9223372036854775807 is not a number of members"},
		"the largest step":   {policy(func(p *AutoscalingPolicy) { p.ScaleOut.MaxStep = MaxReplicas }), "", ""},
		"an unknown select":  {policy(func(p *AutoscalingPolicy) { p.ScaleOut.Select = "Max" }), "scale_out.select", `"Max" does not say which rate counts; there are ["max" "min" "disabled"]`},
		"an empty rate":      {rate(ScalingRate{Period: minute}), "scale_out.rates[1]", "a rate needs count or percent"},
		"a rate twice":       {rate(ScalingRate{Count: 1, Percent: 10, Period: minute}), "scale_out.rates[1]", "a count (here 1) or a percent (here 10)"},
		"a negative rate":    {rate(ScalingRate{Count: -1, Period: minute}), "scale_out.rates[1].count", "-1 is not a number of members; 1 or more"},
		"a rate of NaN":      {rate(ScalingRate{Percent: math.NaN(), Period: minute}), "scale_out.rates[1].percent", "NaN is not allowed here; any number above 0"},
		"a rate of no time":  {rate(ScalingRate{Count: 1}), "scale_out.rates[1].period", "0s is not allowed here; 1s to 30m0s is"},
		"a rate of an hour":  {rate(ScalingRate{Count: 1, Period: 60 * minute}), "scale_out.rates[1].period", "1h0m0s is not allowed here; 1s to 30m0s is"},

		"an unknown pause": {policy(func(p *AutoscalingPolicy) { p.Paused = "both" }), "paused", `"both" is not a direction to pause; there are ["none" "all" "out" "in"]`},
		"an unknown end":   {policy(func(p *AutoscalingPolicy) { p.OnDestroy = "delete" }), "on_destroy", `there are ["keep" "restore" "min"]`},
		"no sign of work":  {guards(ScalingGuards{Busy: &BusyGuard{}}), "guards.busy", "needs prometheus, http, cpu_percent or gpu_percent"},
		"busy for nobody": {
			guards(ScalingGuards{Busy: &BusyGuard{GuardSource: GuardSource{Prometheus: &PrometheusSource{URL: "http://prometheus:9090", Query: " "}}}}), "guards.busy.prometheus.query", `the query is " "; one in PromQL`,
		},
		"busy by no page":  {guards(ScalingGuards{Busy: &BusyGuard{GuardSource: GuardSource{HTTP: &HTTPQueue{URL: "spark"}}}}), "guards.busy.http.url", `"spark" is not an address`},
		"busy for out":     {guards(ScalingGuards{Busy: &BusyGuard{CPUPercent: new(1.0), Pauses: PauseOut}}), "guards.busy.pauses", `"out" is nothing that work pauses; there are ["in" "all"]`},
		"busy for all":     {guards(ScalingGuards{Busy: &BusyGuard{CPUPercent: new(1.0), Pauses: PauseAll}}), "guards.busy.pauses", "needs a sign for all members at once, prometheus or http"},
		"at least nothing": {guards(ScalingGuards{AtLeast: &GuardSource{}}), "guards.at_least", "give exactly one of them"},
		"at least two": {
			guards(ScalingGuards{AtLeast: &GuardSource{HTTP: &HTTPQueue{URL: "http://a"}, Prometheus: &PrometheusSource{URL: "http://b", Query: "up"}}}), "guards.at_least", "give exactly one of them",
		},
		"at least a secret":    {guards(ScalingGuards{AtLeast: &GuardSource{HTTP: &HTTPQueue{URL: "http://a:b@c"}}}), "guards.at_least.http.url", "user and password are no part of an address"},
		"busy by idling":       {guards(ScalingGuards{Busy: &BusyGuard{CPUPercent: new(0.0)}}), "guards.busy.cpu_percent", "0 is not allowed here; any number above 0"},
		"busier than all":      {guards(ScalingGuards{Busy: &BusyGuard{GPUPercent: new(101.0)}}), "guards.busy.gpu_percent", "101 is not allowed here; above 0 to 100 is"},
		"busy by NaN":          {guards(ScalingGuards{Busy: &BusyGuard{GPUPercent: new(math.NaN())}}), "guards.busy.gpu_percent", "NaN is not allowed"},
		"an unknown order":     {guards(ScalingGuards{Remove: "oldest"}), "guards.remove", `there are ["highest_index" "least_busy" "most_loaded_host"]`},
		"a budget of NaN":      {guards(ScalingGuards{MemberHoursPerDay: math.NaN()}), "guards.member_hours_per_day", "NaN is not allowed here; 0 or more is"},
		"a budget below 0":     {guards(ScalingGuards{MemberHoursPerDay: -1}), "guards.member_hours_per_day", "-1 is not allowed here"},
		"a hook in no time":    {hooks(ScalingHooks{BeforeRemoval: &ScalingHook{URL: "http://a", Timeout: new(minute / 601)}}), "hooks.before_removal.timeout", "99.83361ms is not allowed here; 100ms to 168h0m0s is"},
		"a hook for a month":   {hooks(ScalingHooks{AfterAddition: &ScalingHook{URL: "http://a", Timeout: new(30 * 24 * 60 * minute)}}), "hooks.after_addition.timeout", "720h0m0s is not allowed here"},
		"a hook without words": {hooks(ScalingHooks{AfterAddition: &ScalingHook{Command: []string{}}}), "hooks.after_addition.command", "[] names no program"},
		"a hook for nobody":    {hooks(ScalingHooks{BeforeRemoval: &ScalingHook{}}), "hooks.before_removal", "neither url nor command is given"},
		"a decision in an hour": {with(func(_ *AutoscalingPolicy, m *ScalingMetric) {
			m.Algorithm = ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{URL: "http://a", Timeout: new(60 * minute)}}}
		}), `metrics["m"].algorithm.external.timeout`, "1h0m0s is not allowed here; 100ms to 5m0s is"},

		"asleep by the mean":        {asleep(nil, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60}}), "min", `without members ["m"] would ask for none for ever`},
		"asleep by heat":            {asleep(nil, ScalingAlgorithm{Heat: &HeatAlgorithm{Lower: 20, Upper: 80, Target: 50}}), "min", "set min to 1 or more, add a metric of the whole"},
		"woken by room":             {asleep(nil, ScalingAlgorithm{IdleRoom: &IdleRoomAlgorithm{}}), "", ""},
		"asleep by risk":            {asleep(nil, ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1}}), "min", "min is 0"},
		"woken by risk":             {asleep(nil, ScalingAlgorithm{Risk: &RiskAlgorithm{Percent: 1, Capacity: 20, Per: TargetTotal}}), "", ""},
		"asleep by gain":            {asleep(nil, ScalingAlgorithm{MarginalGain: &MarginalGainAlgorithm{}}), "min", "min is 0"},
		"asleep by a lower bound":   {asleep(nil, ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Lower: new(1.0)}}), "min", `threshold with upper) or a schedule that asks for 1 or more, or set on_missing = "max"`},
		"asleep, never told to run": {asleep(map[string]ScalingSchedule{"s": {Start: "0 8 * * *", End: "0 9 * * *"}}, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60}}), "min", "min is 0"},
		"woken by the total":        {asleep(nil, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60, Per: TargetTotal}}), "", ""},
		"woken by a queue":          {asleep(nil, ScalingAlgorithm{Queue: &QueueAlgorithm{PerMember: 1}}), "", ""},
		"woken by a program":        {asleep(nil, ScalingAlgorithm{External: &ExternalAlgorithm{ScalingHook{Command: []string{"decide"}}}}), "", ""},
		"woken by a ratio":          {asleep(nil, ScalingAlgorithm{Ratio: &RatioAlgorithm{Role: "frontend", Per: 1}}), "", ""},
		"woken by an upper bound":   {asleep(nil, ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0)}}), "", ""},
		"woken by a percentage":     {asleep(nil, ScalingAlgorithm{Threshold: &ThresholdAlgorithm{Upper: new(1.0), StepOutPercent: 50}}), "", ""},
		"woken by what is missing": {
			with(func(p *AutoscalingPolicy, m *ScalingMetric) { p.Min, p.Schedules, m.OnMissing = 0, nil, MissingMax }), "", "",
		},
		"asleep by what is missing": {
			with(func(p *AutoscalingPolicy, m *ScalingMetric) { p.Min, p.Schedules, m.OnMissing = 0, nil, MissingMin }), "min", "min is 0",
		},
		"woken by a schedule": {asleep(map[string]ScalingSchedule{"s": {Start: "0 8 * * *", End: "0 9 * * *", Count: 1}}, ScalingAlgorithm{Target: &TargetAlgorithm{Value: 60}}), "", ""},
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

// TestAutoscalingPolicyValidateTellsAll checks that all faults are reported at once, and in the same order each time.
func TestAutoscalingPolicyValidateTellsAll(t *testing.T) {
	p := AutoscalingPolicy{
		Min: 3, Max: 2, Metrics: map[string]ScalingMetric{"b": {OnMissing: MissingMax}, "a": targetMetric(TargetAlgorithm{})}, Schedules: map[string]ScalingSchedule{"s": {Count: 2}},
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
