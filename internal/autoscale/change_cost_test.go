package autoscale

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestBacktestOfCostlyChanges checks that, while a change is in progress, capacity is lost, added members carry
// nothing, and no other change begins.
func TestBacktestOfCostlyChanges(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{
		"load": {
			Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 10, Per: domain.TargetTotal}},
		},
	})
	policy.Initial, policy.Interval = new(2), seconds(30)
	policy.ScaleIn.Stabilisation = seconds(0)
	model := Model{
		Capacity: 10, Startup: 30 * time.Second, Change: ChangeCost{Takes: time.Minute, Lost: 0.25},
		Signals: map[string]Signal{"load": SignalLoad},
	}
	for name, test := range map[string]struct {
		load          []float64
		counts, ready []int
		under         time.Duration
		steps         string
	}{
		// Ordered at 1:00, the member has started at 1:30 and carries load from 2:30 on. What is asked for at 2:00 has
		// to wait until then, and carries load from 4:00 on.
		"more": {
			[]float64{18, 28, 38, 38, 38}, []int{2, 3, 3, 4, 4}, []int{2, 2, 2, 3, 4}, 3 * time.Minute,
			"1m0s 3, 2m30s 4",
		},
		// Removal takes effect at once. For a minute, a quarter of the rest is lost, which is too much for 8, but not
		// for 7.
		"fewer":         {[]float64{18, 8, 8}, []int{2, 1, 1}, []int{2, 1, 1}, time.Minute, "1m0s 1"},
		"fewer in time": {[]float64{18, 7, 7}, []int{2, 1, 1}, []int{2, 1, 1}, 0, "1m0s 1"},
	} {
		t.Run(name, func(t *testing.T) {
			course, err := Backtest(policy, levels(test.load...), model)
			if err != nil {
				t.Fatal(err)
			}
			var steps []string
			for _, step := range course.Steps[1:] {
				steps = append(steps, step.At.Sub(noon).String()+" "+string(rune('0'+step.To)))
			}
			if got := strings.Join(steps, ", "); got != test.steps {
				t.Errorf("the steps are %s, want %s", got, test.steps)
			}
			if diff := cmp.Diff([][]int{test.counts, test.ready}, [][]int{course.Counts, course.Ready}); diff != "" {
				t.Errorf("counts and members at work (-want +got):\n%s", diff)
			}
			if course.Under != test.under {
				t.Errorf("too few for %s, want %s", course.Under, test.under)
			}
		})
	}
}

// TestCostlyChangesAreApart checks that all algorithms wait for a change to end, whatever they follow.
func TestCostlyChangesAreApart(t *testing.T) {
	load := make([]float64, 300)
	for i := range load {
		load[i] = float64(20 + (i*37)%50)
	}
	for name, metric := range map[string]domain.ScalingMetric{
		"target": targetOf(60),
		"heat":   {Algorithm: domain.ScalingAlgorithm{Heat: &domain.HeatAlgorithm{Lower: 30, Upper: 80, Target: 50}}},
	} {
		policy := policyOf(map[string]domain.ScalingMetric{"cpu": metric})
		policy.Interval, policy.ScaleIn.Stabilisation = seconds(15), seconds(0)
		course, err := Backtest(policy, levels(load...),
			Model{Capacity: 10, Startup: 20 * time.Second, Change: ChangeCost{Takes: 3 * time.Minute, Lost: 0.1}})
		if err != nil || course.Changes < 5 {
			t.Fatalf("%s: %d changes, %v", name, course.Changes, err)
		}
		for i, step := range course.Steps[2:] {
			if before := course.Steps[i+1]; step.At.Sub(before.At) < 3*time.Minute {
				t.Errorf("%s: a change at %s is followed by one at %s", name, before.At, step.At)
			}
		}
	}
}

func TestModelsThatAreNone(t *testing.T) {
	for _, change := range []ChangeCost{{Takes: -1}, {Lost: -0.1}, {Lost: 1}} {
		if _, err := Backtest(policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)}), levels(1, 2),
			Model{Capacity: 10, Change: change}); err == nil {
			t.Errorf("%+v is a model", change)
		}
	}
}
