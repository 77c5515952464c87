package autoscale

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// levels returns a trace with one load per minute.
func levels(loads ...float64) Trace { return Trace{Start: noon, Step: time.Minute, Load: loads} }

func TestBacktest(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{
		"load": {
			Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 10, Per: domain.TargetTotal}},
		},
	})
	policy.Initial = new(2)
	policy.Interval = seconds(60)
	model := Model{Capacity: 10, Startup: 90 * time.Second, Signals: map[string]Signal{"load": SignalLoad}}
	course, err := Backtest(policy, levels(20, 40, 40, 40, 40, 10, 10, 40), model)
	if err != nil {
		t.Fatal(err)
	}
	// Ordered in the second minute, the two carry load from the middle of the third on. What is ordered in the eighth
	// is never used.
	want := Course{
		Counts: []int{2, 4, 4, 4, 4, 1, 1, 4}, Ready: []int{2, 2, 2, 4, 4, 1, 1, 1},
		Under: 150 * time.Second, MemberHours: (2 + 4 + 4 + 4 + 4 + 1 + 1 + 4) / 60.0, Changes: 3,
		ChangesPerHour: 3 / (8.0 / 60), Reversals: 2,
	}
	steps := course.Steps
	course.Steps = nil
	if diff := cmp.Diff(want, course, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var got []string
	for _, step := range steps {
		got = append(got, step.At.Format("15:04 ")+strings.Repeat("|", step.To))
	}
	if diff := cmp.Diff([]string{"12:00 ||", "12:01 ||||", "12:05 |", "12:07 ||||"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBacktestBetweenDecisions checks that changes between two decisions count from the moment that they happen.
func TestBacktestBetweenDecisions(t *testing.T) {
	hour := append([]float64{10}, slices.Repeat([]float64{1000}, 59)...)
	total := domain.ScalingMetric{
		Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 10, Per: domain.TargetTotal}},
	}
	queue := domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 600}}}
	for name, test := range map[string]struct {
		metric        domain.ScalingMetric
		signal        Signal
		most          int
		interval      float64
		load          []float64
		capacity      float64
		startup       time.Duration
		under         time.Duration
		counts, ready []int
	}{
		"the load": {
			targetOf(50), SignalUtilisation, 1, 3600, hour, 100, 0, 59 * time.Minute, slices.Repeat([]int{1}, 60),
			slices.Repeat([]int{1}, 60),
		},
		// The count decided at 1:30 is not that of 1:00.
		"the count": {
			total, SignalLoad, 9, 90, []float64{10, 20, 20, 30}, 10, 0, 30 * time.Second, []int{1, 1, 2, 3},
			[]int{1, 1, 2, 3},
		},
		// Ordered at 1:30, the member is at work from 1:50 on.
		"a start": {
			total, SignalLoad, 9, 90, []float64{10, 20, 20}, 10, 20 * time.Second, 50 * time.Second, []int{1, 1, 2},
			[]int{1, 1, 2},
		},
		// What waits at 2:00 arrived from 1:00 on.
		"a queue": {
			queue, SignalQueue, 9, 120, []float64{10, 30, 0, 0, 0}, 10, 0, time.Minute, []int{1, 1, 2, 2, 1},
			[]int{1, 1, 2, 2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(map[string]domain.ScalingMetric{"m": test.metric})
			policy.Max, policy.Interval = test.most, seconds(test.interval)
			course, err := Backtest(policy, levels(test.load...),
				Model{Capacity: test.capacity, Startup: test.startup, Signals: map[string]Signal{"m": test.signal}})
			if err != nil {
				t.Fatal(err)
			}
			if course.Under != test.under {
				t.Errorf("%s without enough members, want %s", course.Under, test.under)
			}
			if diff := cmp.Diff([][]int{test.counts, test.ready}, [][]int{course.Counts, course.Ready}); diff != "" {
				t.Errorf("counts and members at work (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBacktestBoundsSteps checks that a course has the newest steps, and counts all of them.
func TestBacktestBoundsSteps(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{
		"m": {Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 10, Per: domain.TargetTotal}}},
	})
	policy.Interval = seconds(60)
	for name, test := range map[string]struct{ values, steps int }{
		"just as many": {MaxSteps, MaxSteps}, "one more": {MaxSteps + 1, MaxSteps},
		"many more": {5*MaxSteps + 17, MaxSteps},
	} {
		t.Run(name, func(t *testing.T) {
			load := make([]float64, test.values)
			for i := range load {
				load[i] = float64(10 + 10*(i%2))
			}
			trace := levels(load...)
			course, err := Backtest(policy, trace, Model{Capacity: 10, Signals: map[string]Signal{"m": SignalLoad}})
			if err != nil {
				t.Fatal(err)
			}
			changes := test.values - 1
			if len(course.Steps) != test.steps || course.Changes != changes || course.Reversals != changes-1 ||
				course.ChangesPerHour != float64(changes)/(float64(test.values)/60) {
				t.Errorf("%d steps, %d changes, %d reversals, %g changes an hour", len(course.Steps), course.Changes,
					course.Reversals, course.ChangesPerHour)
			}
			for i, step := range course.Steps {
				if want := trace.Start.Add(time.Duration(test.values-test.steps+
					i) * time.Minute); !step.At.Equal(want) {
					t.Fatalf("step %d is at %s, want %s", i, step.At, want)
				}
			}
		})
	}
}

// TestBacktestOfLostSamples checks that no metric sees lost values, although the load was there.
func TestBacktestOfLostSamples(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.Initial, policy.Interval = new(4), seconds(60)
	trace := levels(20, 20, 100, 100, 100, 20, 20, 20)
	trace.Lost = []bool{false, false, true, true, true, false, false, false}
	course, err := Backtest(policy, trace, Model{Capacity: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(course.Steps) != 1 || course.Under != 3*time.Minute {
		t.Errorf("%d changes, and %s without enough members", len(course.Steps)-1, course.Under)
	}
}

func TestBacktestOfQueue(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"jobs": {
		Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 100, CoolDown: seconds(120)}},
	}})
	policy.Min, policy.Interval = 0, seconds(10)
	load := make([]float64, 60)
	load[5], load[6] = 20, 20 // 2400 units of work; a member does one per second
	course, err := Backtest(policy, levels(load...),
		Model{Capacity: 1, Startup: 20 * time.Second, Signals: map[string]Signal{"jobs": SignalQueue}})
	if err != nil {
		t.Fatal(err)
	}
	peak := 0
	for _, count := range course.Counts {
		peak = max(peak, count)
	}
	if first, last := course.Counts[0], course.Counts[len(course.Counts)-1]; first != 0 || last != 0 || peak != 10 {
		t.Errorf("it began with %d members, had %d at most, and ended with %d", first, peak, last)
	}
}

// TestBacktestLeavesOut checks that skipping repeated decisions, and the reasons of decisions that change nothing,
// makes no difference.
func TestBacktestLeavesOut(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		lower, upper := 30.0, 70.0
		cpu := []domain.ScalingMetric{
			targetOf(50),
			{Algorithm: domain.ScalingAlgorithm{
				Heat: &domain.HeatAlgorithm{Lower: lower, Upper: upper, Target: 50, Recurrence: 1 + random.IntN(5)},
			}},
			{Algorithm: domain.ScalingAlgorithm{
				Threshold: &domain.ThresholdAlgorithm{Lower: &lower, Upper: &upper, Samples: 1 + random.IntN(5)},
			}},
			{Algorithm: targetOf(50).Algorithm, Forecast: &domain.Forecast{Lead: domain.Duration(2 * time.Minute)}},
			{
				Algorithm: domain.ScalingAlgorithm{Heat: &domain.HeatAlgorithm{Lower: lower, Upper: upper, Target: 50}},
				Forecast:  &domain.Forecast{},
			},
		}[seed%5]
		cpu.StaleAfter, cpu.OnMissing = seconds(float64(1+random.IntN(90))), domain.MissingMax
		policy := policyOf(map[string]domain.ScalingMetric{"cpu": cpu, "load": {
			Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 10, Per: domain.TargetTotal}},
		}})
		policy.Max, policy.Interval = 40, seconds(float64(5+random.IntN(20)))
		policy.ScaleIn.Stabilisation, policy.ScaleOut.Cooldown = seconds(float64(random.IntN(400))),
			seconds(float64(random.IntN(100)))
		policy.ScaleIn.Cooldown = seconds(float64(random.IntN(300)))
		trace := Bursty(Shape{
			Start: noon, Step: time.Minute, Length: 24 * time.Hour, Base: 50, Peak: 300, Noise: 0.02, Seed: seed,
		}, time.Hour, 10*time.Minute).Losing(0.05, seed)
		model := Model{
			Capacity: 20, Startup: time.Duration(random.IntN(120)) * time.Second,
			Signals: map[string]Signal{"load": SignalLoad},
		}
		quick, err := newSimulation(policy, trace, model)
		if err != nil {
			t.Fatal(err)
		}
		slow, err := newSimulation(policy, trace, model)
		if err != nil {
			t.Fatal(err)
		}
		slow.lasting, slow.loud = false, true
		if diff := cmp.Diff(slow.run(), quick.run(), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("seed %d (-all decisions +without those):\n%s", seed, diff)
		}
	}
}

func TestBacktestRefuses(t *testing.T) {
	good := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		trace  Trace
		model  Model
		says   string
	}{
		"no values":    {good, Trace{Step: time.Minute}, Model{Capacity: 1}, "no values"},
		"no steps":     {good, Trace{Load: []float64{1}}, Model{Capacity: 1}, "no values"},
		"no capacity":  {good, levels(1), Model{}, "a capacity of 0"},
		"a bad policy": {policyOf(nil), levels(1), Model{Capacity: 1}, "metrics"},
		"a bad schedule": {domain.AutoscalingPolicy{
			Group: "job", Role: "worker", Min: 1, Max: 2,
			Schedules: map[string]domain.ScalingSchedule{"day": {Start: "8 o'clock", End: "0 18 * * *", Count: 2}},
		}, levels(1), Model{Capacity: 1}, "8 o'clock"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Backtest(test.policy, test.trace, test.model); err == nil ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
		})
	}
}

// BenchmarkBacktest lets algorithms decide over a year of minutes with a load that is never the same, at the default
// interval of five seconds.
func BenchmarkBacktest(b *testing.B) {
	load := make([]float64, 365*24*60)
	for i := range load {
		load[i] = 50 + 30*math.Sin(float64(i)/229) + 10*math.Sin(float64(i)/7)
	}
	ahead := targetOf(50)
	ahead.Forecast = &domain.Forecast{
		Lead: domain.Duration(5 * time.Minute), Season: new(domain.Duration(24 * time.Hour)),
	}
	lower, upper := 30.0, 70.0
	of := func(a domain.ScalingAlgorithm) domain.ScalingMetric { return domain.ScalingMetric{Algorithm: a} }
	for name, metric := range map[string]domain.ScalingMetric{
		"target": targetOf(50), "forecast": ahead,
		"heat": of(domain.ScalingAlgorithm{Heat: &domain.HeatAlgorithm{Lower: lower, Upper: upper, Target: 50}}),
		"threshold": of(domain.ScalingAlgorithm{
			Threshold: &domain.ThresholdAlgorithm{Lower: &lower, Upper: &upper, Samples: 3},
		}),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Backtest(policyOf(map[string]domain.ScalingMetric{"cpu": metric}), levels(load...),
					Model{Capacity: 20, Startup: time.Minute}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
