package autoscale

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// seconds returns a duration as in a policy.
func seconds(n float64) *domain.Duration {
	d := domain.Duration(n * float64(time.Second))
	return &d
}

// targetOf returns a metric that is kept at a value.
func targetOf(value float64) domain.ScalingMetric {
	return domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: value}}}
}

// policyOf returns a policy with these metrics that scales in at once.
func policyOf(metrics map[string]domain.ScalingMetric) domain.AutoscalingPolicy {
	return domain.AutoscalingPolicy{
		Cluster: "lab", Group: "job", Role: "worker", Min: 1, Max: 10, Metrics: metrics,
		ScaleIn: domain.ScalingBehaviour{Stabilisation: seconds(0)},
	}
}

// scalerOf returns the autoscaler of a policy, which has to be valid.
func scalerOf(t testing.TB, policy domain.AutoscalingPolicy) *Autoscaler {
	t.Helper()
	scaler, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	return scaler
}

func TestDecide(t *testing.T) {
	value := func(v float64) Measurement { return Measurement{Value: v, At: noon} }
	onMissing := func(rule domain.OnMissing, v *float64) domain.ScalingMetric {
		m := targetOf(50)
		m.OnMissing, m.MissingValue = rule, v
		return m
	}
	hot := domain.ScalingMetric{
		Algorithm: domain.ScalingAlgorithm{
			Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 60, Target: 50, Recurrence: 2},
		},
	}
	cpu := map[string]domain.ScalingMetric{"cpu": targetOf(50)}
	both := map[string]domain.ScalingMetric{"cpu": targetOf(50), "gpu": targetOf(50)}
	seen := map[string]domain.ScalingMetric{"cpu": targetOf(50), "seen": {}}
	atNight := policyOf(map[string]domain.ScalingMetric{"seen": {}})
	atNight.Schedules = map[string]domain.ScalingSchedule{"night": {Start: "0 22 * * *", End: "0 4 * * *", Count: 3}}
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		count  int
		seen   map[string]Measurement
		want   int
		says   string
	}{
		"nothing to do": {policyOf(cpu), 4, map[string]Measurement{"cpu": value(50)}, 4, "cpu: "},
		"out":           {policyOf(cpu), 4, map[string]Measurement{"cpu": value(80)}, 7, "cpu: "},
		"in":            {policyOf(cpu), 4, map[string]Measurement{"cpu": value(20)}, 2, "cpu: "},
		"not above max": {
			policyOf(cpu), 8, map[string]Measurement{"cpu": value(100)}, 10, "16 is above max (10)",
		},
		"not below min": {
			policyOf(cpu), 4, map[string]Measurement{"cpu": value(0)}, 1, "0 is below min (1)",
		},
		"out of bounds, nothing is read": {policyOf(cpu), 12, nil, 10, "12 is above max (10)"},
		"below its bounds":               {policyOf(cpu), 0, nil, 1, "0 is below min (1)"},
		"the largest count wins": {
			policyOf(both), 4, map[string]Measurement{"cpu": value(25), "gpu": value(75)}, 6, "gpu: ",
		},
		"one more careful keeps it": {
			policyOf(both), 4, map[string]Measurement{"cpu": value(25), "gpu": value(50)}, 4, "gpu: ",
		},
		"missing": {policyOf(cpu), 4, nil, 4, "cpu: not measured"},
		"missing, and why": {
			policyOf(cpu), 4, map[string]Measurement{"cpu": {Why: "Prometheus can't be reached"}}, 4,
			"cpu: Prometheus can't be reached",
		},
		"stale": {
			policyOf(cpu), 4, map[string]Measurement{"cpu": {Value: 0, At: noon.Add(-2 * time.Minute)}}, 4,
			"cpu: stale: its last value is 2m0s old",
		},
		"no number": {policyOf(cpu), 4, map[string]Measurement{"cpu": value(math.NaN())}, 4, notANumber},
		"a missing one blocks in": {
			policyOf(both), 4, map[string]Measurement{"cpu": value(10)}, 4,
			"gpu is missing, so the role is not scaled in",
		},
		"a missing one lets out": {
			policyOf(both), 4, map[string]Measurement{"cpu": value(100)}, 8, "gpu: not measured",
		},
		"missing asks for max": {
			policyOf(map[string]domain.ScalingMetric{"cpu": onMissing(domain.MissingMax, nil)}), 6, nil, 10,
			"cpu: not measured",
		},
		"missing asks for min": {
			policyOf(map[string]domain.ScalingMetric{"cpu": onMissing(domain.MissingMin, nil)}), 6, nil, 1,
			"cpu: not measured",
		},
		"missing is a value": {
			policyOf(map[string]domain.ScalingMetric{"cpu": onMissing(domain.MissingAsValue, new(75.0))}), 4, nil, 6,
			"cpu: not measured, using 75: 75 of 50",
		},
		"missing is a value, of a stale one": {
			policyOf(map[string]domain.ScalingMetric{"cpu": onMissing(domain.MissingAsValue, new(75.0))}),
			4,

			map[string]Measurement{"cpu": {Value: 0, At: noon.Add(-2 * time.Minute)}}, 6,

			"cpu: stale: its last value is 2m0s old, using 75: 75 of 50",
		},
		"observed, and high": {
			policyOf(seen), 4, map[string]Measurement{"cpu": value(50), "seen": value(1000)}, 4, observed,
		},
		"observed, and low": {
			policyOf(seen), 4, map[string]Measurement{"cpu": value(80), "seen": value(0)}, 7, observed,
		},
		"observed, blocks no others": {
			policyOf(seen), 4, map[string]Measurement{"cpu": value(20)}, 2, "seen: not measured",
		},
		"observed alone, outside the schedules": {atNight, 4, map[string]Measurement{"seen": value(1000)}, 1, observed},
		"not hot enough yet": {
			policyOf(map[string]domain.ScalingMetric{"cpu": hot}), 4, map[string]Measurement{"cpu": value(90)}, 4,
			"cpu: ",
		},
		"who abstains is heard with others": {
			policyOf(map[string]domain.ScalingMetric{"cpu": hot, "gpu": targetOf(50)}),
			4,

			map[string]Measurement{"cpu": value(90), "gpu": value(60)}, 8, "gpu: ",
		},
		"who abstains keeps others from going below": {
			policyOf(map[string]domain.ScalingMetric{"cpu": hot, "gpu": targetOf(50)}), 4,

			map[string]Measurement{"cpu": value(30), "gpu": value(10)}, 3, "gpu: ",
		},
		"who abstains adds nothing by itself": {
			policyOf(map[string]domain.ScalingMetric{"cpu": hot, "gpu": targetOf(50)}), 4,

			map[string]Measurement{"cpu": value(90), "gpu": value(50)}, 4, "gpu: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := scalerOf(t, test.policy).Decide(&State{},
				Seen{Now: noon, Count: test.count, Ready: test.count, Metrics: test.seen})
			if d.From != test.count || d.To != test.want {
				t.Errorf("%d → %d, want %d: %s", d.From, d.To, test.want, d.Why())
			}
			if !strings.Contains(d.Why(), test.says) {
				t.Errorf("it says %q, and not %q", d.Why(), test.says)
			}
		})
	}
}

// TestAskedValue checks the value and its age in what was asked.
func TestAskedValue(t *testing.T) {
	ratio := domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Ratio: &domain.RatioAlgorithm{Role: "ps", Per: 2}}}
	none := math.NaN()
	for name, test := range map[string]struct {
		metric domain.ScalingMetric
		seen   map[string]Measurement
		value  float64
		age    time.Duration
	}{
		"measured": {
			targetOf(50), map[string]Measurement{"m": {Value: 40, At: noon.Add(-5 * time.Second)}}, 40, 5 * time.Second,
		},
		"as old": {
			targetOf(50), map[string]Measurement{"m": {Value: 40, At: noon.Add(-time.Minute)}}, 40, time.Minute,
		},
		"stale": {
			targetOf(50), map[string]Measurement{"m": {Value: 40, At: noon.Add(-61 * time.Second)}}, none,
			61 * time.Second,
		},
		"not there":   {targetOf(50), nil, none, 0},
		"unreachable": {targetOf(50), map[string]Measurement{"m": {Why: "gone", At: noon.Add(-time.Second)}}, none, 0},
		"a ratio":     {ratio, nil, none, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scaler := scalerOf(t, policyOf(map[string]domain.ScalingMetric{"m": test.metric}))
			d := scaler.Decide(&State{},
				Seen{Now: noon, Count: 4, Ready: 4, Metrics: test.seen, Roles: map[string]int{"ps": 8}})
			if got := d.Asked[0]; !cmp.Equal(got.Value, test.value, cmpopts.EquateNaNs()) || got.Age != test.age {
				t.Errorf("%v, %s old; want %v, %s", got.Value, got.Age, test.value, test.age)
			}
		})
	}
}

// TestDecideNew checks that a new policy does not scale in before it has seen enough, while a controller that restarts
// with its state does so at once.
func TestDecideNew(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.ScaleIn.Stabilisation = nil
	scaler, state := scalerOf(t, policy), State{}
	for at := time.Duration(0); ; at += 5 * time.Second {
		now := noon.Add(at)
		d := scaler.Decide(&state,
			Seen{Now: now, Count: 8, Ready: 8, Metrics: map[string]Measurement{"cpu": {Value: 10, At: now}}})
		if d.To == d.From && at < time.Hour {
			continue
		}
		if at < domain.DefaultStabilisationIn || at > domain.DefaultStabilisationIn+5*time.Second || d.To != 2 {
			t.Errorf("after %s: %d → %d: %s", at, d.From, d.To, d.Why())
		}
		return
	}
}

func TestCooldown(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.ScaleOut.Cooldown, policy.ScaleIn.Cooldown = seconds(60), seconds(180)
	for name, test := range map[string]struct {
		ago   time.Duration
		value float64
		want  int
	}{
		"neither":         {30 * time.Second, 100, 4},
		"out again":       {time.Minute, 100, 8},
		"not in yet":      {time.Minute, 10, 4},
		"in again":        {3 * time.Minute, 10, 1},
		"and nothing out": {3 * time.Minute, 50, 4},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Since: noon.Add(-time.Hour), LastChange: noon.Add(-test.ago)}
			d := scalerOf(t, policy).Decide(&state, Seen{
				Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{"cpu": {Value: test.value, At: noon}},
			})
			if d.To != test.want {
				t.Errorf("→ %d, want %d: %s", d.To, test.want, d.Why())
			}
		})
	}
}

// TestCooldownIsNoBlindness checks that metrics are followed during a cooldown: a queue that had work until just before
// its end has not been empty for long.
func TestCooldownIsNoBlindness(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{
		"jobs": {
			Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1, CoolDown: seconds(300)}},
		},
	})
	policy.Min, policy.ScaleOut.Cooldown, policy.ScaleIn.Cooldown = 0, seconds(600), seconds(600)
	scaler, state, count := scalerOf(t, policy), State{}, 2
	changes := map[string]int{}
	for at := time.Duration(0); at <= 20*time.Minute; at += 30 * time.Second {
		length := 0.0
		switch {
		case at < time.Minute:
			length = 2
		case at >= 2*time.Minute && at <= 10*time.Minute+30*time.Second:
			length = 1
		}
		now := noon.Add(at)
		d := scaler.Decide(&state, Seen{
			Now: now, Count: count, Ready: count, Metrics: map[string]Measurement{"jobs": {Value: length, At: now}},
		})
		if d.To != count {
			count = d.To
			scaler.Changed(&state, now, d.From, d.To)
			changes[at.String()] = count
		}
	}
	if diff := cmp.Diff(map[string]int{"1m0s": 1, "16m0s": 0}, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestCooldownRemembersWhatWasAsked checks that what was asked for during a cooldown counts for the stabilisation after
// it.
func TestCooldownRemembersWhatWasAsked(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.ScaleOut.Cooldown, policy.ScaleIn.Cooldown, policy.ScaleIn.Stabilisation = seconds(60), seconds(60),
		seconds(300)
	state := State{Since: noon.Add(-time.Hour), LastChange: noon.Add(-30 * time.Second)}
	scaler := scalerOf(t, policy)
	for _, test := range []struct {
		after time.Duration
		value float64
		says  string
	}{{0, 75, "in cooldown: last change 30s ago"}, {time.Minute, 25, "2 wanted, but 6 was needed in the last 5m0s"}} {
		now := noon.Add(test.after)
		d := scaler.Decide(&state,
			Seen{Now: now, Count: 4, Ready: 4, Metrics: map[string]Measurement{"cpu": {Value: test.value, At: now}}})
		if d.To != 4 || !strings.Contains(d.Why(), test.says) {
			t.Errorf("after %s: → %d, %q, want 4, %q", test.after, d.To, d.Why(), test.says)
		}
	}
}

// all returns the algorithms that follow a metric, some with a forecast.
func all() map[string]domain.ScalingMetric {
	forecast := targetOf(50)
	forecast.Forecast = &domain.Forecast{Lead: domain.Duration(time.Minute)}
	return map[string]domain.ScalingMetric{
		"target":   targetOf(60),
		"forecast": forecast,
		"heat": {
			Algorithm: domain.ScalingAlgorithm{Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 60, Target: 50}},
		},
		"threshold": {Algorithm: domain.ScalingAlgorithm{
			Threshold: &domain.ThresholdAlgorithm{Lower: new(20.0), Upper: new(80.0), Samples: 3},
		}},
		"queue": {Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 10}}},
		"gain":  {Algorithm: domain.ScalingAlgorithm{MarginalGain: &domain.MarginalGainAlgorithm{Threshold: 0.1}}},
		"risk":  {Algorithm: domain.ScalingAlgorithm{Risk: &domain.RiskAlgorithm{Percent: 1}}},
		"risky": riskOf(20),
		"learned": learnedOf(twoFeatures(),
			func(a *domain.LearnedAlgorithm) { a.Observes = map[string]string{"cpu": "target"} }),
	}
}

// TestDecideProperties checks that, whatever is measured or missing, a count stays within its bounds, and that a
// controller that dies after each decision and keeps only the state decides the same.
func TestDecideProperties(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		policy := policyOf(all())
		policy.ScaleIn.Stabilisation, policy.ScaleOut.Stabilisation = seconds(float64(random.IntN(60))),
			seconds(float64(random.IntN(20)))
		policy.ScaleIn.Cooldown, policy.ScaleOut.MaxStep = seconds(float64(random.IntN(60))), random.IntN(4)
		policy.Min, policy.Max = random.IntN(3)+1, 3+random.IntN(20)
		scaler := scalerOf(t, policy)
		lasting, restored := State{}, State{}
		count := random.IntN(25)
		var forgetful *Autoscaler
		for tick := range 300 {
			if tick%20 == 0 {
				forgetful = scalerOf(t, policy)
			}
			now := noon.Add(time.Duration(tick) * 5 * time.Second)
			seen := Seen{Now: now, Count: count, Ready: random.IntN(count + 1), Metrics: map[string]Measurement{}}
			for name := range policy.Metrics {
				switch random.IntN(12) {
				case 0:
				case 1:
					seen.Metrics[name] = Measurement{Why: "gone"}
				case 2:
					seen.Metrics[name] = Measurement{
						Value: []float64{math.NaN(), math.Inf(1), -1, 1e300}[random.IntN(4)], At: now,
					}
				default:
					seen.Metrics[name] = Measurement{
						Value: 100 * random.Float64(), At: now.Add(-time.Duration(random.IntN(70)) * time.Second),
					}
				}
			}
			d := scaler.Decide(&lasting, seen)
			if d.To < policy.Min || d.To > policy.Max {
				t.Fatalf("seed %d, tick %d: %d → %d is beyond %d and %d: %s", seed, tick, d.From, d.To, policy.Min,
					policy.Max, d.Why())
			}
			stored, err := json.Marshal(restored)
			if err != nil {
				t.Fatalf("seed %d, tick %d: %v", seed, tick, err)
			}
			restored = State{}
			if err := json.Unmarshal(stored, &restored); err != nil {
				t.Fatal(err)
			}
			again := forgetful.Decide(&restored, seen)
			if diff := cmp.Diff([]any{d.To, d.Why()}, []any{again.To, again.Why()}); diff != "" {
				t.Fatalf("seed %d, tick %d: restored, it decides otherwise:\n%s", seed, tick, diff)
			}
			if count = d.To; d.To != d.From {
				scaler.Changed(&lasting, now, d.From, d.To)
				scaler.Changed(&restored, now, d.From, d.To)
			}
		}
	}
}

// TestUnreadyMembersAddNobody checks that members that are not ready affect neither the expected value nor the heat,
// just as they do not affect the current value.
func TestUnreadyMembersAddNobody(t *testing.T) {
	ahead := targetOf(50)
	ahead.Forecast = &domain.Forecast{Lead: domain.Duration(time.Minute)}
	for name, metric := range map[string]domain.ScalingMetric{
		"target": targetOf(50), "forecast": ahead,
		"heat": {Algorithm: domain.ScalingAlgorithm{
			Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 60, Target: 50, Recurrence: 1},
		}},
	} {
		policy := policyOf(map[string]domain.ScalingMetric{"cpu": metric})
		policy.Max = 100
		measured := Measurement{
			Value: 100, At: noon, Members: membersWith(100, 100, 100, 100), Unready: []string{"m4", "m5", "m6", "m7"},
		}
		d := scalerOf(t, policy).Decide(&State{},
			Seen{Now: noon, Count: 8, Ready: 8, Metrics: map[string]Measurement{"cpu": measured}})
		if d.To != 8 {
			t.Errorf("%s: four members at twice the target, and four that have just been started: → %d, %q", name, d.To,
				d.Why())
		}
	}
}

// TestMeasurementOf checks that the expected values of members grow in proportion to their mean.
func TestMeasurementOf(t *testing.T) {
	for _, test := range []struct {
		value, expected float64
		members, want   map[string]float64
	}{
		{40, 60, membersWith(20, 60), membersWith(30, 90)},
		{0, 60, membersWith(0, 0), membersWith(60, 60)},
		{40, 60, nil, nil},
	} {
		m := Measurement{Value: test.value, At: noon, Members: test.members, Missing: []string{"m9"}}
		want := Measurement{Value: test.expected, At: noon, Members: test.want, Missing: []string{"m9"}}
		if diff := cmp.Diff(want, m.of(test.expected)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestMissingOfRequest checks that for a metric in percent of requests, members without a value count as using all of
// their request before scaling in.
func TestMissingOfRequest(t *testing.T) {
	for measure, want := range map[domain.AgentMeasure]int{
		domain.AgentCPUPercent: 4, domain.AgentMemoryPercent: 4, domain.AgentGPUPercent: 3,
	} {
		metric := targetOf(50)
		metric.Source.Agent = &domain.AgentSource{Measure: measure}
		measured := Measurement{Value: 20, At: noon, Members: membersWith(20, 20), Missing: []string{"m2", "m3"}}
		d := scalerOf(t, policyOf(map[string]domain.ScalingMetric{"cpu": metric})).Decide(&State{},
			Seen{Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{"cpu": measured}})
		if d.To != want {
			t.Errorf("%s: → %d, want %d: %s", measure, d.To, want, d.Why())
		}
	}
}

// TestClockPutBack checks that a clock set back by hours does not block scaling until it has caught up.
func TestClockPutBack(t *testing.T) {
	for name, change := range map[string]func(p *domain.AutoscalingPolicy){
		"plain":         func(*domain.AutoscalingPolicy) {},
		"with cooldown": func(p *domain.AutoscalingPolicy) { p.ScaleOut.Cooldown = seconds(60) },
	} {
		policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
		change(&policy)
		scaler, state := scalerOf(t, policy), State{}
		see := func(now time.Time, value float64, count int) Decision {
			return scaler.Decide(&state, Seen{
				Now: now, Count: count, Ready: count, Metrics: map[string]Measurement{"cpu": {Value: value, At: now}},
			})
		}
		see(noon, 100, 1)
		scaler.Changed(&state, noon, 1, 2)
		see(noon.Add(time.Minute), 50, 2)
		if d := see(noon.Add(-3*time.Hour), 100, 2); d.To != 4 {
			t.Errorf("%s: → %d: %s", name, d.To, d.Why())
		}
	}
}
