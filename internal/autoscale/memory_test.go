package autoscale

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestMemoryOfAnotherMeasure checks that what was learned of a metric is forgotten once the metric measures something
// else, even if that was changed while no controller ran, and not if its algorithm has other settings.
func TestMemoryOfAnotherMeasure(t *testing.T) {
	busy := func(change func(m *domain.ScalingMetric)) domain.AutoscalingPolicy {
		m := domain.ScalingMetric{
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
			Algorithm: domain.ScalingAlgorithm{
				Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 60, Target: 50, Recurrence: 3},
			},
		}
		change(&m)
		return policyOf(map[string]domain.ScalingMetric{"busy": m})
	}
	for name, test := range map[string]struct {
		change func(m *domain.ScalingMetric)
		// heat is what is remembered after two decisions that find the metric hot, a change, and another such decision.
		heat int
	}{
		"nothing": {func(*domain.ScalingMetric) {}, 3},
		"a threshold": {func(m *domain.ScalingMetric) {
			m.Algorithm.Heat = &domain.HeatAlgorithm{Lower: 20, Upper: 70, Target: 50, Recurrence: 9}
		}, 3},
		"a default that is written down": {func(m *domain.ScalingMetric) { m.Window = seconds(30) }, 3},
		"the unit": {func(m *domain.ScalingMetric) {
			m.Source.Agent = &domain.AgentSource{Measure: domain.AgentCPUPercent}
		}, 1},
		"the source": {func(m *domain.ScalingMetric) {
			m.Source = domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: "http://p:9090", Query: "up"}}
		}, 1},
		"the window":      {func(m *domain.ScalingMetric) { m.Window = seconds(60) }, 1},
		"the aggregation": {func(m *domain.ScalingMetric) { m.Aggregation = domain.AggregateMax }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var state State
			decide := func(policy domain.AutoscalingPolicy, times int) {
				for range times {
					scalerOf(t, policy).Decide(&state, Seen{
						Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{"busy": {Value: 90, At: noon}},
					})
				}
			}
			before := busy(func(m *domain.ScalingMetric) { m.Algorithm.Heat.Recurrence = 9 })
			decide(before, 2)
			stored, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			state = State{}
			if err := json.Unmarshal(stored, &state); err != nil {
				t.Fatal(err)
			}
			after := busy(func(m *domain.ScalingMetric) {
				m.Algorithm.Heat.Recurrence = 9
				test.change(m)
			})
			decide(after, 1)
			if got := state.Metrics["busy"].Heat; got != test.heat {
				t.Errorf("the heat is %d, want %d", got, test.heat)
			}
		})
	}
}

// TestMemoryOfDefaults checks that nothing is forgotten if a default is written down, and something is if it was not a
// default.
func TestMemoryOfDefaults(t *testing.T) {
	agent := domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}}
	progress := domain.ScalingSource{Progress: &domain.ProgressSource{Pattern: "step"}}
	query := domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: "http://p:9090", Query: "up"}}
	measure := func(s domain.ScalingSource, change func(m *domain.ScalingMetric)) string {
		m := domain.ScalingMetric{Source: s}
		change(&m)
		of, err := measureOf(m, "replica")
		if err != nil {
			t.Fatal(err)
		}
		return of
	}
	for name, test := range map[string]struct {
		source domain.ScalingSource
		change func(m *domain.ScalingMetric)
		same   bool
	}{
		"the window":      {agent, func(m *domain.ScalingMetric) { m.Window = seconds(30) }, true},
		"the aggregation": {agent, func(m *domain.ScalingMetric) { m.Aggregation = domain.AggregateMean }, true},
		"whose value": {agent, func(m *domain.ScalingMetric) {
			m.Source.Agent = &domain.AgentSource{Measure: domain.AgentCPUs, Of: domain.AgentMember}
		}, true},
		"the sum of members": {agent, func(m *domain.ScalingMetric) {
			m.Source.Agent = &domain.AgentSource{Measure: domain.AgentCPUs, Of: domain.AgentTotal}
		}, false},
		"the window of progress": {progress, func(m *domain.ScalingMetric) { m.Window = seconds(30) }, true},
		"the combination": {progress, func(m *domain.ScalingMetric) {
			m.Source.Progress = &domain.ProgressSource{Pattern: "step", Combine: domain.CombineSum}
		}, true},
		"another combination": {progress, func(m *domain.ScalingMetric) {
			m.Source.Progress = &domain.ProgressSource{Pattern: "step", Combine: domain.CombineMean}
		}, false},
		"its own role": {progress, func(m *domain.ScalingMetric) {
			m.Source.Progress = &domain.ProgressSource{Pattern: "step", Role: "replica"}
		}, true},
		"another role": {progress, func(m *domain.ScalingMetric) {
			m.Source.Progress = &domain.ProgressSource{Pattern: "step", Role: "frontend"}
		}, false},
		"the last value of a query": {query, func(m *domain.ScalingMetric) {
			m.Aggregation = domain.AggregateLast
		}, true},
		"the window of a query": {query, func(m *domain.ScalingMetric) { m.Window = seconds(30) }, false},
		"white space around a query": {query, func(m *domain.ScalingMetric) {
			m.Source.Prometheus = &domain.PrometheusSource{URL: "http://p:9090", Query: "\n  up\n"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := measure(test.source, func(*domain.ScalingMetric) {}), measure(test.source, test.change)
			if (before == after) != test.same {
				t.Errorf("it is the same measure: %t, want %t", before == after, test.same)
			}
		})
	}
}

// TestMemoryOfEarlierBuilds checks that what was stored without saying what was measured is kept.
func TestMemoryOfEarlierBuilds(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"jobs": {
		Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 1}},
	}})
	since := noon.Add(-time.Minute)
	state := State{Metrics: map[string]Memory{"jobs": {EmptySince: since}}}
	scalerOf(t, policy).Decide(&state, Seen{
		Now: noon, Count: 1, Ready: 1, Metrics: map[string]Measurement{"jobs": {Value: 0, At: noon}},
	})
	if got := state.Metrics["jobs"]; !got.EmptySince.Equal(since) || got.Of == "" {
		t.Errorf("it remembers %+v", got)
	}
}

// TestMemoryOfFormerMetrics checks that a metric that is gone, or has another name, is forgotten.
func TestMemoryOfFormerMetrics(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"a": targetOf(50), "c": targetOf(50)})
	state := State{Metrics: map[string]Memory{"a": {}, "b": {Heat: 2}}}
	scalerOf(t, policy).Decide(&state, Seen{Now: noon, Count: 4, Ready: 4})
	if diff := cmp.Diff([]string{"a", "c"}, slices.Sorted(maps.Keys(state.Metrics))); diff != "" {
		t.Errorf("it remembers (-want +got):\n%s", diff)
	}
}
