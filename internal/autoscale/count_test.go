package autoscale

import (
	"math"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestWholeMembers(t *testing.T) {
	for name, test := range map[string]struct {
		x    float64
		want int
	}{
		"none":                         {0, 0},
		"fewer than none":              {-3.5, 0},
		"a part of one":                {0.1, 1},
		"a whole number":               {3, 3},
		"more than a whole number":     {3.01, 4},
		"an error of floating point":   {3.0000000001, 3},
		"an error below":               {2.9999999999, 3},
		"what 0.55 makes of 20":        {20 * 0.55 / 0.5, 22},
		"as many as a role may have":   {domain.MaxReplicas, domain.MaxReplicas},
		"more than a role may have":    {1e300, domain.MaxReplicas},
		"infinitely many":              {math.Inf(1), domain.MaxReplicas},
		"infinitely many too few":      {math.Inf(-1), 0},
		"not a number":                 {math.NaN(), 0},
		"the least that there is of 1": {math.SmallestNonzeroFloat64, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wholeMembers(test.x); got != test.want {
				t.Errorf("%v are %d members, want %d", test.x, got, test.want)
			}
		})
	}
}

// sane fails the test if a proposal is not a valid count.
func sane(t *testing.T, p proposal) {
	t.Helper()
	if p.count < 0 || p.count > domain.MaxReplicas || p.why == "" {
		t.Errorf("proposal is %+v", p)
	}
}

// TestNoNumbers runs every algorithm with values that are not numbers, or as large as possible.
func TestNoNumbers(t *testing.T) {
	limit := 60.0
	policy := domain.AutoscalingPolicy{Min: 1, Max: domain.MaxReplicas}
	for _, value := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0,
	} {
		in := asking{
			now: noon, count: 4, ready: 4, metric: Measurement{Value: value}, policy: &policy,
			roles: map[string]int{"w": 4},
		}
		var m Memory
		for range 5 {
			for _, p := range []proposal{
				heat(domain.HeatAlgorithm{Lower: 0.2, Upper: 0.6, Target: 1e-300}, &m, in),
				threshold(domain.ThresholdAlgorithm{
					Upper: &limit, Lower: &limit, StepOut: domain.MaxReplicas, StepInPercent: 1e300,
				}, &m, in),
				queue(domain.QueueAlgorithm{PerMember: 1e-300}, &m, in),
				ratio(domain.RatioAlgorithm{Role: "w", Per: 1e-300}, in),
				risk(domain.RiskAlgorithm{Percent: 0.1, Capacity: 1e-300, Per: domain.TargetTotal}, &m, in),
				marginalGain(domain.MarginalGainAlgorithm{Threshold: 0.1, Settle: new(domain.Duration)}, &m, in),
			} {
				sane(t, p)
				if !finite(value) && p.count != 4 && p.why == notANumber {
					t.Errorf("%v makes %+v", value, p)
				}
			}
		}
	}
}
