package autoscale

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// noisyWeek returns loads of a week of minutes, for 4 to 40 members that carry 20 each.
func noisyWeek() map[string]Trace {
	shape := Shape{
		Start: noon.Truncate(24 * time.Hour), Step: time.Minute, Length: 7 * 24 * time.Hour, Base: 80, Peak: 800,
		Noise: 0.05, Seed: 1,
	}
	return map[string]Trace{
		"diurnal": Diurnal(shape), "bursty": Bursty(shape, 2*time.Hour, 20*time.Minute),
		"steps": StepLoad(shape, 6*time.Hour),
		"lost":  Diurnal(shape).Losing(0.2, 1), "blind": Diurnal(shape).Blind(shape.Start.Add(60*time.Hour), time.Hour),
	}
}

// courseOf lets risk decide each minute.
func courseOf(t *testing.T, percent float64, trace Trace, signal Signal) Course {
	t.Helper()
	metric := riskOf(percent)
	if signal == SignalUtilisation {
		metric.Algorithm.Risk = &domain.RiskAlgorithm{Percent: percent}
	}
	policy := policyOf(map[string]domain.ScalingMetric{"load": metric})
	policy.Max, policy.Interval = 200, new(domain.Duration(time.Minute))
	course, err := Backtest(policy, trace,
		Model{Capacity: 20, Startup: time.Minute, Signals: map[string]Signal{"load": signal}})
	if err != nil {
		t.Fatal(err)
	}
	return course
}

// TestRiskKeepsItsPromise checks that the share of time with too few members is as requested, to within a quarter, and
// not much less if that costs members.
func TestRiskKeepsItsPromise(t *testing.T) {
	for name, trace := range noisyWeek() {
		for _, percent := range []float64{1, 2, 5} {
			if name == "bursty" && percent < 2 {
				// 84 unpredictable bursts, each short for at least a minute until members are there, are 0.8 % of a
				// week
				continue
			}
			t.Run(fmt.Sprintf("%s at %g %%", name, percent), func(t *testing.T) {
				course := courseOf(t, percent, trace, SignalLoad)
				got := 100 * course.Under.Hours() / (7 * 24)
				if got > 1.25*percent {
					t.Errorf("too few for %.2f %% of the time, of %g %%", got, percent)
				}
			})
		}
	}
}

// TestRiskSavesMembers checks that more risk takes fewer members.
func TestRiskSavesMembers(t *testing.T) {
	for name, trace := range noisyWeek() {
		few, many := courseOf(t, 5, trace, SignalLoad), courseOf(t, 1, trace, SignalLoad)
		if few.MemberHours >= many.MemberHours {
			t.Errorf("%s: %.0f member-hours for 5 %%, and %.0f for 1 %%", name, few.MemberHours, many.MemberHours)
		}
	}
}

// TestRiskByUtilisation checks that the count grows while members are at their limit, as they do not show the rest of
// the load then.
func TestRiskByUtilisation(t *testing.T) {
	trace := noisyWeek()["diurnal"]
	course := courseOf(t, 2, trace, SignalUtilisation)
	if got := 100 * course.Under.Hours() / (7 * 24); got > 2.5 {
		t.Errorf("too few for %.2f %% of the time, of 2 %%", got)
	}
	policy := policyOf(map[string]domain.ScalingMetric{
		"load": {Algorithm: domain.ScalingAlgorithm{Risk: &domain.RiskAlgorithm{Percent: 1}}},
	})
	d := scalerOf(t, policy).Decide(&State{},
		Seen{Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{"load": {Value: 100, At: noon}}})
	if d.To < 6 {
		t.Errorf("four members at their limit: → %d, %q", d.To, d.Why())
	}
}

func TestRiskSays(t *testing.T) {
	metric := riskOf(1)
	policy := policyOf(map[string]domain.ScalingMetric{"load": metric})
	policy.Max = 100
	for name, test := range map[string]struct {
		metric     domain.ScalingMetric
		value      float64
		count      int
		from, most int
		says       []string
	}{
		"first": {
			metric, 100, 5, 6, 20,
			[]string{"load: the load of 5 members, 5 expected in 1m0s by the newest value, with a margin of "},
		},
		"none": {metric, 0, 1, 1, 1, []string{"the load of 0 members"}},
		"near": {metric, 100, 12, 12, 12, []string{"which is not worth a change from 12"}},
		"no members to measure": {
			domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Risk: &domain.RiskAlgorithm{Percent: 1}}}, 50, 0, 1,
			1, nil,
		},
		"no number": {metric, math.NaN(), 5, 5, 5, []string{"not a number"}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policy
			policy.Metrics = map[string]domain.ScalingMetric{"load": test.metric}
			d := scalerOf(t, policy).Decide(&State{}, Seen{
				Now: noon, Count: test.count, Ready: test.count,
				Metrics: map[string]Measurement{"load": {Value: test.value, At: noon}},
			})
			if d.To < test.from || d.To > test.most {
				t.Errorf("%d → %d, want %d to %d: %s", d.From, d.To, test.from, test.most, d.Why())
			}
			for _, says := range test.says {
				if !strings.Contains(d.Why(), says) {
					t.Errorf("it says %q, want %q", d.Why(), says)
				}
			}
		})
	}
}

// TestRiskOfALoadAfterNone checks that a load after almost none gets its members as soon as the requested share of time
// is used up, and not hours later, even if being short never had a price before.
func TestRiskOfALoadAfterNone(t *testing.T) {
	for name, test := range map[string]struct {
		quiet  time.Duration
		first  float64
		within time.Duration
	}{
		"none, for a minute":        {time.Minute, 0, 2 * time.Minute},
		"none, for an hour":         {time.Hour, 0, 5 * time.Minute},
		"none, for a day":           {24 * time.Hour, 0, 75 * time.Minute},
		"none, for two days":        {48 * time.Hour, 0, 3 * time.Hour},
		"next to none, for an hour": {time.Hour, 0.15, 5 * time.Minute},
		"one member, for an hour":   {time.Hour, 1, 5 * time.Minute},
	} {
		for _, load := range []float64{1.5, 5, 50} {
			trace := Trace{Step: 5 * time.Second}
			for at := time.Duration(0); at < test.quiet+6*time.Hour; at += trace.Step {
				value := test.first
				if at >= test.quiet {
					value = load
				}
				trace.Load = append(trace.Load, 20*value)
			}
			policy := policyOf(map[string]domain.ScalingMetric{"load": riskOf(5)})
			policy.Max, policy.Interval = 200, new(domain.Duration(5*time.Second))
			course, err := Backtest(policy, trace,
				Model{Capacity: 20, Startup: 5 * time.Second, Signals: map[string]Signal{"load": SignalLoad}})
			if err != nil {
				t.Fatal(err)
			}
			if course.Under > test.within {
				t.Errorf("%s, and then %g: too few for %s, want %s at most", name, load, course.Under, test.within)
			}
		}
	}
}

// TestRiskSaysHowItWent checks that after hours, the reason says how long there were too few members.
func TestRiskSaysHowItWent(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"load": riskOf(1)})
	scaler, state := scalerOf(t, policy), State{}
	var d Decision
	for i := range 200 {
		load := 40.0
		if i%20 == 19 {
			load = 100
		}
		now := noon.Add(time.Duration(i) * time.Minute)
		d = scaler.Decide(&state,
			Seen{Now: now, Count: 3, Ready: 3, Metrics: map[string]Measurement{"load": {Value: load, At: now}}})
	}
	if says := "; too few for 5"; !strings.Contains(d.Why(), says) || !strings.Contains(d.Why(), "(1 % allowed)") {
		t.Errorf("it says %q, want %q", d.Why(), says)
	}
}

// TestRiskLearnsTheHour checks that after some hours a load that jumps at the same minute of each hour finds its
// members there.
func TestRiskLearnsTheHour(t *testing.T) {
	load := make([]float64, 7*24*60)
	for i := range load {
		if load[i] = 100; i%60 == 0 {
			load[i] = 200 // no more than the default rates allow at once
		}
	}
	course := courseOf(t, 0.5, levels(load...), SignalLoad)
	// Without that, it has 10 members for 7 of 10 hours, which is a mean of 8.5.
	got, mean := 100*course.Under.Hours()/(7*24), course.MemberHours/(7*24)
	if got > 1.25*0.5 || mean > 7.5 {
		t.Errorf("it was short for %.2f %% of the time, of 0.5 %%, with %.1f members on the mean", got, mean)
	}
}

// TestRiskRemembers checks that the state is small, that decisions are the same after it is stored and read, and that a
// repeated question about one value gives the same answer.
func TestRiskRemembers(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"load": riskOf(1)})
	policy.Max = 100
	scaler, state, count := scalerOf(t, policy), State{}, 10
	const most = 6000 // bytes
	for i := range 3000 {
		now := noon.Add(time.Duration(i) * 5 * time.Second)
		seen := Seen{
			Now: now, Count: count, Ready: count,
			Metrics: map[string]Measurement{"load": {Value: 100 + 90*math.Sin(float64(i)/50), At: now}},
		}
		d := scaler.Decide(&state, seen)
		if i%100 == 99 {
			stored, err := json.Marshal(state)
			if err != nil || len(stored) > most {
				t.Fatalf("it remembers %d bytes: %v", len(stored), err)
			}
			var restored State
			if err := json.Unmarshal(stored, &restored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(state.Metrics, restored.Metrics); diff != "" {
				t.Fatalf("after %d decisions, it is not the same (-kept +read):\n%s", i, diff)
			}
			if again := scaler.Decide(&restored, seen); again.To != d.To {
				t.Fatalf("asked again: → %d, was %d", again.To, d.To)
			}
		}
		if count = d.To; d.To != d.From {
			scaler.Changed(&state, now, d.From, d.To)
		}
	}
}

// TestRiskOfAnotherCapacity checks that everything is learned again for another capacity, as the state is in members.
func TestRiskOfAnotherCapacity(t *testing.T) {
	var m Memory
	in := asking{
		now: noon, count: 5, ready: 5, metric: Measurement{Value: 100, At: noon},
		policy: &domain.AutoscalingPolicy{Max: 100},
	}
	algorithm := *riskOf(1).Algorithm.Risk
	risk(algorithm, &m, in)
	first := m.Risk
	algorithm.Capacity = 10
	if risk(algorithm, &m, in); m.Risk == first || m.Risk.Capacity != 10 {
		t.Errorf("it goes on with what it learned of a capacity of %g", m.Risk.Capacity)
	}
}

// TestRiskForecastAbove checks that the chance of exceeding a value matches the bins.
func TestRiskForecastAbove(t *testing.T) {
	f := newRiskForecast(4)
	last := 1.0
	for scaled := -6.0; scaled < 60; scaled += 0.05 {
		chance := f.above(scaled)
		if chance > last+1e-6 || chance < 0 {
			t.Fatalf("above %g is %g, and it was %g below", scaled, chance, last)
		}
		last = chance
	}
	if at := f.above(0); math.Abs(at-0.5) > 0.01 {
		t.Errorf("half of the errors are above 0 at first, and it is %g", at)
	}
	for range 100 {
		f.compare(4, 40, 86400, 0.01, 100)
	}
	if at := f.above(0); at < 0.99 {
		t.Errorf("after errors above 0 alone, %g are above it", at)
	}
}
