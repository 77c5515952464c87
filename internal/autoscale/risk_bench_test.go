package autoscale

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// BenchmarkRisk lets risk decide each minute of a year.
func BenchmarkRisk(b *testing.B) {
	load := make([]float64, 365*24*60)
	for i := range load {
		load[i] = 500 + 300*math.Sin(float64(i)/229) + 100*math.Sin(float64(i)/7)
	}
	policy := policyOf(map[string]domain.ScalingMetric{"load": riskOf(1)})
	policy.Max, policy.Interval = 100, new(domain.Duration(time.Minute))
	for b.Loop() {
		_, err := Backtest(policy, levels(load...),
			Model{Capacity: 20, Startup: time.Minute, Signals: map[string]Signal{"load": SignalLoad}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// riskOf allows too few members for this percentage of the time, for a load of which a member carries 20.
func riskOf(percent float64) domain.ScalingMetric {
	return domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Risk: &domain.RiskAlgorithm{Percent: percent, Capacity: 20, Per: domain.TargetTotal},
	}}
}
