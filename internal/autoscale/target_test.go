package autoscale

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// membersWith returns the values of members m0, m1 and so on; NaN means none.
func membersWith(values ...float64) map[string]float64 {
	members := map[string]float64{}
	for i, value := range values {
		if !math.IsNaN(value) {
			members[fmt.Sprint("m", i)] = value
		}
	}
	return members
}

// tolerances returns a policy with these tolerances for scaling out and in.
func tolerances(out, in float64) domain.AutoscalingPolicy {
	return domain.AutoscalingPolicy{
		ScaleOut: domain.ScalingBehaviour{Tolerance: &out}, ScaleIn: domain.ScalingBehaviour{Tolerance: &in},
	}
}

// TestTargetMean covers means without the members' values. The names in brackets are those of tests in Kubernetes'
// replica_calculator_test.go, and "documentation" is its page on horizontal pod autoscaling.
func TestTargetMean(t *testing.T) {
	tests := map[string]struct {
		value, target float64
		count, ready  int
		policy        domain.AutoscalingPolicy
		want          int
		why           string
	}{
		"twice the target doubles (documentation)": {
			200, 100, 3, 3, domain.AutoscalingPolicy{}, 6, "200 of 100: 3 ready members × 2 = 6",
		},
		"half the target halves (documentation)": {
			50, 100, 6, 6, domain.AutoscalingPolicy{}, 3, "50 of 100: 6 ready members × 0.5 = 3",
		},
		"a fraction of a member is one": {
			82, 50, 4, 4, domain.AutoscalingPolicy{}, 7, "82 of 50: 4 ready members × 1.64 = 7",
		},
		"up (ScaleUpCMObject)": {20, 15, 3, 3, domain.AutoscalingPolicy{}, 4, ""},
		"up, by ready members alone (CMObjectIgnoresUnready)": {
			50, 10, 3, 1, domain.AutoscalingPolicy{}, 5, "50 of 10: 1 ready member × 5 = 5",
		},
		"up, yet fewer than there are (CMExternalIgnoresUnready)": {8.6, 4.4, 3, 1, domain.AutoscalingPolicy{}, 2, ""},
		"down (ScaleDownCMObject)":                                {12, 20, 5, 5, domain.AutoscalingPolicy{}, 3, ""},
		"down (ScaleDownCMExternal)": {
			8.6, 14.334, 5, 5, domain.AutoscalingPolicy{}, 3, "",
		},
		"down to none (TestScaleDownToZeroCMObject)": {0, 20, 5, 5, domain.AutoscalingPolicy{}, 0, ""},
		"in tolerance (ToleranceCMObject)": {
			20.666, 20, 3, 3, domain.AutoscalingPolicy{}, 3, "20.67 of 20 is within the tolerance of 10 %",
		},
		"in tolerance (ToleranceCMExternal)": {
			8.6, 8.888, 3, 3, domain.AutoscalingPolicy{}, 3, "8.6 of 8.888 is within the tolerance of 10 %",
		},
		"in tolerance, the count and not the ready members": {
			52, 50, 5, 2, domain.AutoscalingPolicy{}, 5, "52 of 50 is within the tolerance of 10 %",
		},
		"at the upper tolerance":             {55, 50, 5, 5, domain.AutoscalingPolicy{}, 5, ""},
		"above the upper tolerance":          {55.1, 50, 5, 5, domain.AutoscalingPolicy{}, 6, ""},
		"at the lower tolerance":             {45, 50, 10, 10, domain.AutoscalingPolicy{}, 10, ""},
		"below the lower tolerance":          {44.9, 50, 10, 10, domain.AutoscalingPolicy{}, 9, ""},
		"at the tolerance, but for rounding": {0.33, 0.3, 5, 5, domain.AutoscalingPolicy{}, 5, ""},
		"a tolerance of scaling out (KEP-4951)": {
			60, 50, 5, 5, tolerances(0.25, 0), 5, "60 of 50 is within the tolerance of 25 %",
		},
		"and not of scaling in": {40, 50, 5, 5, tolerances(0.25, 0), 4, ""},
		"a tolerance of scaling in (KEP-4951)": {
			40, 50, 5, 5, tolerances(0, 0.25), 5, "40 of 50 is within the tolerance of 25 %",
		},
		"and not of scaling out":              {51, 50, 5, 5, tolerances(0, 0.25), 6, ""},
		"a tolerance of 0, and at the target": {50, 50, 5, 5, tolerances(0, 0), 5, ""},
		"no member for rounding":              {14, 50, 25, 25, domain.AutoscalingPolicy{}, 7, ""},
		"from zero by the ratio (getUsageRatioReplicaCount)": {
			120, 50, 0, 0, domain.AutoscalingPolicy{}, 3, "120 of 50 without members: 3",
		},
		"from zero without tolerance":  {52, 50, 0, 0, domain.AutoscalingPolicy{}, 2, ""},
		"from zero for little":         {0.1, 50, 0, 0, domain.AutoscalingPolicy{}, 1, ""},
		"still zero for nothing":       {0, 50, 0, 0, domain.AutoscalingPolicy{}, 0, ""},
		"a negative value":             {-50, 50, 4, 4, domain.AutoscalingPolicy{}, 0, ""},
		"a very large value":           {1e300, 1e-300, 4, 4, domain.AutoscalingPolicy{}, domain.MaxReplicas, ""},
		"more than there may be":       {20000, 2, 2, 2, domain.AutoscalingPolicy{}, domain.MaxReplicas, ""},
		"a very large value from zero": {1e300, 1, 0, 0, domain.AutoscalingPolicy{}, domain.MaxReplicas, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, per := range []domain.TargetPer{"", domain.TargetMean} {
				metric := Measurement{Value: test.value}
				if test.count == 0 {
					metric.Members = membersWith() // there are none whose values could be known
				}
				got := target(domain.TargetAlgorithm{Value: test.target, Per: per},
					asking{count: test.count, ready: test.ready, metric: metric, policy: &test.policy})
				if got.count != test.want || got.abstains {
					t.Errorf("%+v, not %d", got, test.want)
				}
				if got.why == "" || test.why != "" && got.why != test.why {
					t.Errorf("because %q, not %q", got.why, test.why)
				}
			}
		})
	}
}

// TestTargetHolds covers values that ask for nothing: the count stays, and others don't scale it in.
func TestTargetHolds(t *testing.T) {
	tests := map[string]struct {
		per    domain.TargetPer
		count  int
		metric Measurement
		why    string
	}{
		"no number":            {domain.TargetMean, 3, Measurement{Value: math.NaN()}, notANumber},
		"no number from zero":  {domain.TargetMean, 0, Measurement{Value: math.NaN()}, notANumber},
		"infinite":             {domain.TargetMean, 3, Measurement{Value: math.Inf(1)}, notANumber},
		"a total that is none": {domain.TargetTotal, 3, Measurement{Value: math.NaN()}, notANumber},
		"a total that is -Inf": {domain.TargetTotal, 0, Measurement{Value: math.Inf(-1)}, notANumber},
		"no member is ready":   {domain.TargetMean, 3, Measurement{Value: 80}, "no member is ready"},
		"no member with a value": {
			domain.TargetMean, 3, Measurement{Value: 80, Members: membersWith(), Missing: []string{"m0"}},
			"no ready member has a value",
		},
		"no ready one with one": {
			domain.TargetMean, 1, Measurement{Members: membersWith(90), Unready: []string{"m0"}},
			"no ready member has a value",
		},
		"none has run for so long": {
			domain.TargetMean, 1,
			Measurement{Members: membersWith(90), Unready: []string{"m0"}, ReadyAfter: 30 * time.Second},
			"no ready member has a value: members are ready once they have run for 30s",
		},
		"only members without it": {
			domain.TargetMean, 1, Measurement{Members: map[string]float64{"m0": math.NaN()}},
			"no ready member has a value",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := target(domain.TargetAlgorithm{Value: 50, Per: test.per},
				asking{count: test.count, metric: test.metric, policy: &domain.AutoscalingPolicy{}})
			if want := (proposal{count: test.count, abstains: true, why: test.why}); got != want {
				t.Errorf("%+v, not %+v", got, want)
			}
		})
	}
}

// TestTargetMembers covers means of members with known values. The names in brackets are those of tests in Kubernetes'
// replica_calculator_test.go, with their utilisations of requests of 1 unchanged.
func TestTargetMembers(t *testing.T) {
	none := math.NaN()
	tests := map[string]struct {
		target  float64
		count   int
		values  []float64
		unready []string
		missing []string
		policy  domain.AutoscalingPolicy
		want    int
		why     string
	}{
		"up (ScaleUp)": {
			30, 3, []float64{30, 50, 70}, nil, nil, domain.AutoscalingPolicy{}, 5,
			"50 of 30: 3 ready members × 1.667 = 5",
		},
		"up (ScaleUpCM)": {15, 3, []float64{20, 10, 30}, nil, nil, domain.AutoscalingPolicy{}, 4, ""},
		"down (ScaleDown)": {
			50, 5, []float64{10, 30, 50, 25, 25}, nil, nil, domain.AutoscalingPolicy{}, 3, "",
		},
		"down (ScaleDownCM)": {
			20, 5, []float64{12, 12, 12, 12, 12}, nil, nil, domain.AutoscalingPolicy{}, 3, "",
		},
		"within tolerance (Tolerance)": {
			20, 3, []float64{20, 21, 21}, nil, nil, domain.AutoscalingPolicy{}, 3,
			"20.67 of 20 is within the tolerance of 10 %",
		},
		"less up for unready ones (ScaleUpUnreadyLessScale)": {
			30, 3, []float64{30, 50, 70}, []string{"m0"}, nil, domain.AutoscalingPolicy{}, 4,
			"60 of 30, 40 with members that are not ready or have no value: 3 × 1.333 = 4",
		},
		"not up for unready ones (ScaleUpUnreadyNoScale)": {
			30, 3, []float64{40, 50, 70}, []string{"m1", "m2"}, nil, domain.AutoscalingPolicy{}, 3,
			"40 of 30, but 13.33 with members that are not ready or have no value: 3 as before",
		},
		"unready ones into the tolerance": {
			30, 3, []float64{50, 49, 9}, []string{"m2"}, nil, domain.AutoscalingPolicy{}, 3,
			"49.5 of 30, 33 with members that are not ready or have no value, is within the tolerance of 10 %",
		},
		"unready ones, with a tolerance of scaling out": {
			30, 3, []float64{50, 49, 9}, []string{"m2"}, nil, tolerances(0.05, 0), 4, "",
		},
		"unready ones without values (ScaleUpUnreadyLessScale)": {
			30, 3, []float64{none, 50, 70}, []string{"m0"}, nil, domain.AutoscalingPolicy{}, 4, "",
		},
		"down without unready ones (ScaleDownIncludeUnreadyPods)": {
			50, 5, []float64{10, 30, 50, 25, 25}, []string{"m3", "m4"}, nil, domain.AutoscalingPolicy{}, 2, "",
		},
		"down without those to come (ScaleDownExcludeUnscheduledPods)": {
			50, 5, []float64{10}, []string{"m1", "m2", "m3", "m4"}, nil, domain.AutoscalingPolicy{}, 1, "",
		},
		"down with missing ones at the target (MissingMetrics)": {
			100, 4, []float64{40, 9.5}, nil, []string{"m2", "m3"}, domain.AutoscalingPolicy{}, 3, "",
		},
		"missing ones and no direction (MissingMetricsNoChangeEq)": {
			100, 2, []float64{100}, nil, []string{"m1"}, domain.AutoscalingPolicy{}, 2, "",
		},
		"not up for a missing one (MissingMetricsNoChangeGt)": {
			100, 2, []float64{190}, nil, []string{"m1"}, domain.AutoscalingPolicy{}, 2,
			"190 of 100, 95 with members that are not ready or have no value, is within the tolerance of 10 %",
		},
		"not down for a missing one (MissingMetricsNoChangeLt)": {
			100, 2, []float64{60}, nil, []string{"m1"}, domain.AutoscalingPolicy{}, 2, "",
		},
		"in tolerance, unready and missing (MissingMetricsUnreadyChange)": {
			50, 3, []float64{10, 45}, []string{"m0"}, []string{"m2"}, domain.AutoscalingPolicy{}, 3, "",
		},
		"up, unready and missing (MissingMetricsUnreadyScaleUp)": {
			50, 3, []float64{10, 200}, []string{"m0"}, []string{"m2"}, domain.AutoscalingPolicy{}, 4, "",
		},
		"down, unready and missing (MissingMetricsUnreadyScaleDown)": {
			100, 4, []float64{10, 10, 10}, []string{"m0"}, []string{"m3"}, domain.AutoscalingPolicy{}, 2, "",
		},
		"down, yet more than there are (DuringRollingUpdateWithMaxSurge)": {
			50, 1, []float64{20, 20}, nil, []string{"m2"}, domain.AutoscalingPolicy{}, 1, "",
		},
		"up, yet fewer than there are, as the count is higher than what is seen": {
			50, 9, []float64{100, 100}, nil, []string{"m2"}, domain.AutoscalingPolicy{}, 9, "",
		},
		"a tolerance of scaling in for what is damped": {
			100, 2, []float64{40}, nil, []string{"m1"}, tolerances(0, 0.3), 2, "",
		},
		"a value that is not a number counts as missing": {
			100, 2, []float64{60, math.Inf(1)}, nil, nil, domain.AutoscalingPolicy{}, 2, "",
		},
		"no member for rounding": {0.05, 2, []float64{0.1, 0.2}, nil, nil, domain.AutoscalingPolicy{}, 6, ""},
		"very large values": {
			1e-300, 2, []float64{1e308, 1e308}, []string{"m9"}, nil, domain.AutoscalingPolicy{}, domain.MaxReplicas, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			metric := Measurement{
				Value: none, Members: membersWith(test.values...), Unready: test.unready, Missing: test.missing,
			}
			got := target(domain.TargetAlgorithm{Value: test.target},
				asking{count: test.count, ready: len(test.values), metric: metric, policy: &test.policy})
			if got.count != test.want || got.abstains {
				t.Errorf("%+v, not %d", got, test.want)
			}
			if got.why == "" || test.why != "" && got.why != test.why {
				t.Errorf("because %q, not %q", got.why, test.why)
			}
		})
	}
}

// TestTargetMembersInAnyOrder covers sums that depend on the order of their terms: the same values always ask for the
// same count.
func TestTargetMembersInAnyOrder(t *testing.T) {
	in := asking{
		policy: &domain.AutoscalingPolicy{}, count: 4, ready: 4,
		metric: Measurement{Members: membersWith(1e16, 70, 3, -1e16)},
	}
	want := target(domain.TargetAlgorithm{Value: 1}, in)
	for range 100 {
		if got := target(domain.TargetAlgorithm{Value: 1}, in); got != want {
			t.Fatalf("%+v, and then %+v", want, got)
		}
	}
}

// TestTargetTotal covers values of the whole role. The names in brackets are those of tests in Kubernetes'
// replica_calculator_test.go.
func TestTargetTotal(t *testing.T) {
	tests := map[string]struct {
		value, target float64
		count         int
		policy        domain.AutoscalingPolicy
		want          int
		why           string
	}{
		"up (ScaleUpCMPerPodObject)": {
			20, 5, 3, domain.AutoscalingPolicy{}, 4, "20 at 5 each: 4 members",
		},
		"up (ScaleUpPerPodCMExternal)":     {8.6, 2.15, 3, domain.AutoscalingPolicy{}, 4, ""},
		"down (ScaleDownPerPodCMObject)":   {6, 2, 5, domain.AutoscalingPolicy{}, 3, ""},
		"down (ScaleDownPerPodCMExternal)": {8.6, 2.867, 5, domain.AutoscalingPolicy{}, 3, ""},
		"in tolerance (TolerancePerPodCMObject)": {
			20.166, 5, 4, domain.AutoscalingPolicy{}, 4,
			"20.17 for 4 members is within the tolerance of 10 % of 5 each",
		},
		"in tolerance (TolerancePerPodCMExternal)": {8.6, 2.9, 3, domain.AutoscalingPolicy{}, 3, ""},
		"above the tolerance":                      {111, 10, 10, domain.AutoscalingPolicy{}, 12, ""},
		"at the tolerance":                         {110, 10, 10, domain.AutoscalingPolicy{}, 10, ""},
		"a tolerance of scaling out":               {111, 10, 10, tolerances(0.2, 0), 10, ""},
		"a tolerance of scaling in":                {85, 10, 10, tolerances(0, 0.2), 10, ""},
		"from zero":                                {21, 5, 0, domain.AutoscalingPolicy{}, 5, ""},
		"from zero for little": {
			0.1, 5, 0, domain.AutoscalingPolicy{}, 1, "0.1 at 5 each: 1 member",
		},
		"still zero": {0, 5, 0, domain.AutoscalingPolicy{}, 0, ""},
		"to zero (TestScaleDownToZeroCMExternal)": {0, 14.4, 5, domain.AutoscalingPolicy{}, 0, ""},
		"a very large value":                      {1e300, 5, 5, domain.AutoscalingPolicy{}, domain.MaxReplicas, ""},
		"a very large value of a small share": {
			1e308, 1e-308, 0, domain.AutoscalingPolicy{}, domain.MaxReplicas, "",
		},
		"a negative value": {-1, 5, 5, domain.AutoscalingPolicy{}, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// Neither the members' own values nor the number of ready ones matters.
			metric := Measurement{Value: test.value, Members: membersWith(1000)}
			got := target(domain.TargetAlgorithm{Value: test.target, Per: domain.TargetTotal},
				asking{count: test.count, metric: metric, policy: &test.policy})
			if got.count != test.want || got.abstains {
				t.Errorf("%+v, not %d", got, test.want)
			}
			if got.why == "" || test.why != "" && got.why != test.why {
				t.Errorf("because %q, not %q", got.why, test.why)
			}
		})
	}
}

func BenchmarkTarget(b *testing.B) {
	in := asking{policy: &domain.AutoscalingPolicy{}, count: 4, ready: 4, metric: Measurement{Value: 82}}
	for b.Loop() {
		target(domain.TargetAlgorithm{Value: 50}, in)
	}
}
