package autoscale

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestPendingDecisions checks that stabilisation windows work with algorithms that act on several decisions in a row.
// In between, these are not yet asking for a change, but the present count isn't needed, or enough, either.
func TestPendingDecisions(t *testing.T) {
	limits := domain.ThresholdAlgorithm{Lower: new(20.0), Upper: new(60.0)}
	inRow := limits
	inRow.Samples = 3
	threshold := func(a domain.ThresholdAlgorithm) domain.ScalingMetric {
		return domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Threshold: &a}}
	}
	heat := domain.ScalingMetric{
		Algorithm: domain.ScalingAlgorithm{Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 60, Target: 50}},
	}
	only := func(m domain.ScalingMetric) map[string]domain.ScalingMetric {
		return map[string]domain.ScalingMetric{"cpu": m}
	}
	beside := func(a, b domain.ScalingMetric) map[string]domain.ScalingMetric {
		return map[string]domain.ScalingMetric{"cpu": a, "other": b}
	}
	unmeasured := map[string]domain.ScalingMetric{"cpu": threshold(inRow), "missing": targetOf(50)}
	always := func(value float64) func(time.Duration) float64 {
		return func(time.Duration) float64 { return value }
	}
	// but is a value except for one decision every four minutes, which is less than a window.
	but := func(value, once float64) func(time.Duration) float64 {
		return func(at time.Duration) float64 {
			if at%(4*time.Minute) == 0 {
				return once
			}
			return value
		}
	}
	for name, test := range map[string]struct {
		metrics map[string]domain.ScalingMetric
		// out is the window for scaling out; that for scaling in is the default.
		out     time.Duration
		value   func(at time.Duration) float64
		unready bool
		// to is the first other count, within 10 minutes; 0 if there is none.
		to int
	}{
		"threshold":                   {only(threshold(limits)), 0, always(1), false, 7},
		"threshold, in a row":         {only(threshold(inRow)), 0, always(1), false, 7},
		"heat":                        {only(heat), 0, always(1), false, 1},
		"threshold, back in the band": {only(threshold(inRow)), 0, but(1, 40), false, 0},
		"heat, back in the band":      {only(heat), 0, but(1, 40), false, 0},
		"threshold, a peak":           {only(threshold(inRow)), 0, but(1, 90), false, 0},
		"heat, a peak":                {only(heat), 0, but(1, 90), false, 0},
		"heat, none ready":            {only(heat), 0, always(1), true, 0},
		"both":                        {beside(threshold(inRow), heat), 0, always(1), false, 7},
		"beside a target":             {beside(threshold(inRow), targetOf(50)), 0, always(1), false, 7},
		"beside one that needs all":   {beside(heat, targetOf(1)), 0, always(1), false, 0},
		"beside a missing metric":     {unmeasured, 0, always(1), false, 0},
		"out: threshold":              {only(threshold(limits)), 5 * time.Minute, always(90), false, 9},
		"out: threshold, in a row":    {only(threshold(inRow)), 5 * time.Minute, always(90), false, 9},
		"out: heat":                   {only(heat), 5 * time.Minute, always(90), false, 15},
		"out: back in the band":       {only(threshold(inRow)), 5 * time.Minute, but(90, 40), false, 0},
		"out: a dip":                  {only(threshold(inRow)), 5 * time.Minute, but(90, 1), false, 0},
		"out: heat, a dip":            {only(heat), 5 * time.Minute, but(90, 1), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(test.metrics)
			policy.Max, policy.ScaleIn.Stabilisation = 20, nil
			policy.ScaleOut.Stabilisation = seconds(test.out.Seconds())
			policy.ScaleOut.Rates = []domain.ScalingRate{{Count: 20, Period: domain.Duration(time.Minute)}}
			scaler, state := scalerOf(t, policy), State{}
			seen := Seen{Count: 8, Ready: 8, Metrics: map[string]Measurement{}}
			if test.unready {
				seen.Ready = 0
			}
			for at := time.Duration(0); at <= 10*time.Minute; at += 5 * time.Second {
				seen.Now = noon.Add(at)
				for metric := range test.metrics {
					if metric != "missing" {
						seen.Metrics[metric] = Measurement{Value: test.value(at), At: seen.Now}
					}
				}
				d := scaler.Decide(&state, seen)
				if d.To == d.From {
					continue
				}
				if at < domain.DefaultStabilisationIn || d.To != test.to {
					t.Errorf("after %s: %d → %d, want %d: %s", at, d.From, d.To, test.to, d.Why())
				}
				return
			}
			if test.to != 0 {
				t.Errorf("it stays %d, want %d", seen.Count, test.to)
			}
		})
	}
}
