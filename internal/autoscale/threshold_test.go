package autoscale

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestThreshold(t *testing.T) {
	lower, upper := 20.0, 60.0
	band := func(a domain.ThresholdAlgorithm) domain.ThresholdAlgorithm {
		a.Lower, a.Upper = &lower, &upper
		return a
	}
	for name, test := range map[string]struct {
		algorithm domain.ThresholdAlgorithm
		count     int
		values    []float64
		want      []int
	}{
		"one by one": {band(domain.ThresholdAlgorithm{}), 4, []float64{61, 70, 45, 19}, []int{5, 6, 6, 5}},
		"delta = 1 and -1, within_bounds_trigger = 5 (documentation of the Nomad Autoscaler)": {
			band(domain.ThresholdAlgorithm{StepOut: 1, StepIn: 1, Samples: 5}), 4,
			[]float64{70, 80, 90, 100, 99, 10, 10, 10, 10, 10}, []int{4, 4, 4, 4, 5, 5, 5, 5, 5, 4},
		},
		"at the thresholds": {band(domain.ThresholdAlgorithm{}), 4, []float64{60, 20}, []int{4, 4}},
		"three in a row": {
			band(domain.ThresholdAlgorithm{Samples: 3}), 4, []float64{61, 61, 61, 61, 61, 61}, []int{4, 4, 5, 5, 5, 6},
		},
		"three in a row downwards": {
			band(domain.ThresholdAlgorithm{Samples: 3}), 4, []float64{1, 1, 1, 1, 1, 1}, []int{4, 4, 3, 3, 3, 2},
		},
		"three, but not in a row": {
			band(domain.ThresholdAlgorithm{Samples: 3}), 4, []float64{61, 61, 60, 61, 61, 1, 61},
			[]int{4, 4, 4, 4, 4, 4, 4},
		},
		"steps of members": {
			band(domain.ThresholdAlgorithm{StepOut: 3, StepIn: 2}), 4, []float64{61, 1}, []int{7, 5},
		},
		"percentages are rounded up": {
			band(domain.ThresholdAlgorithm{StepOutPercent: 50, StepInPercent: 30}), 5, []float64{61, 1}, []int{8, 5},
		},
		"exactly 10 % of 30": {
			band(domain.ThresholdAlgorithm{StepOutPercent: 10}), 30, []float64{61}, []int{33},
		},
		"the larger step": {
			band(domain.ThresholdAlgorithm{StepOut: 2, StepOutPercent: 100}), 1, []float64{61, 61, 61}, []int{3, 6, 12},
		},
		"never below 0": {
			band(domain.ThresholdAlgorithm{StepIn: 3}), 4, []float64{1, 1, 1}, []int{1, 0, 0},
		},
		"from 0 by percentages": {
			band(domain.ThresholdAlgorithm{StepOutPercent: 50}), 0, []float64{61, 61, 61}, []int{1, 2, 3},
		},
		"never above what there is": {
			band(domain.ThresholdAlgorithm{StepOut: domain.MaxReplicas}), 4, []float64{61}, []int{domain.MaxReplicas},
		},
		"without an upper threshold": {domain.ThresholdAlgorithm{Lower: &lower}, 4, []float64{99, 19}, []int{4, 3}},
		"thresholds of one value": {
			domain.ThresholdAlgorithm{Lower: &upper, Upper: &upper}, 4, []float64{60, 61, 59}, []int{4, 5, 4},
		},
		"more than one sample of one": {band(domain.ThresholdAlgorithm{Samples: 1}), 4, []float64{61, 1}, []int{5, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			var got []int
			count := test.count
			for _, value := range test.values {
				p := threshold(test.algorithm, &m,
					asking{now: noon, count: count, ready: count, metric: Measurement{Value: value}})
				sane(t, p)
				count = p.count
				got = append(got, count)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThresholdWhy(t *testing.T) {
	lower, upper := 20.0, 60.0
	for name, test := range map[string]struct {
		samples int
		value   float64
		want    string
	}{
		"above":      {3, 71, "71 is above 60, decision 1 of 3 in a row"},
		"below":      {3, 19.5, "19.5 is below 20, decision 1 of 3 in a row"},
		"at once":    {0, 71, "71 is above 60"},
		"in between": {3, 45, "45 is within the thresholds"},
	} {
		t.Run(name, func(t *testing.T) {
			a := domain.ThresholdAlgorithm{Lower: &lower, Upper: &upper, Samples: test.samples}
			if got := threshold(a, &Memory{},
				asking{count: 4, metric: Measurement{Value: test.value}}).why; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestThresholdWithoutLower checks that without a lower threshold, others may scale in.
func TestThresholdWithoutLower(t *testing.T) {
	upper := 60.0
	p := threshold(domain.ThresholdAlgorithm{Upper: &upper}, &Memory{},
		asking{now: noon, count: 4, ready: 4, metric: Measurement{Value: 30}})
	if want := (proposal{abstains: true, why: "30 is not above 60"}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
}
