package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fullPolicies returns a policy without unknown values, and one that has not decided yet.
func fullPolicies() []PolicyStatus {
	return []PolicyStatus{
		{
			Cluster: "lab", Group: "mnist", Role: "worker", Current: 4, Desired: 6, Min: 2, Max: 8,
			DecidedAt: time.UnixMilli(1_700_000_000_250),
			Metrics: map[string]PolicyMetric{
				"cpu": {Value: new(92.5), Count: new(7)}, "jobs": {}, "load": {Value: new(0.0)},
				"night": {Count: new(0)}, "\xff\"": {Value: new(1.0)},
			},
			Guards:      map[string]*float64{"at_least": new(3.0), "busy.http": nil},
			Recommended: map[string]float64{"cpus": 2.31},
			Decisions:   map[string]int{"done": 3, "unchanged": 120},
		},
		{Cluster: "lab", Group: "mnist", Role: "ps", Current: 1, Min: 1, Max: 2},
	}
}

const everyPolicy = `
trainyard_autoscaling_current_replicas{cluster="lab",group="mnist",role="ps"} 1
trainyard_autoscaling_current_replicas{cluster="lab",group="mnist",role="worker"} 4
trainyard_autoscaling_decisions_total{cluster="lab",group="mnist",outcome="done",role="worker"} 3
trainyard_autoscaling_decisions_total{cluster="lab",group="mnist",outcome="unchanged",role="worker"} 120
trainyard_autoscaling_desired_replicas{cluster="lab",group="mnist",role="worker"} 6
trainyard_autoscaling_guard_readable{cluster="lab",group="mnist",guard="at_least",role="worker"} 1
trainyard_autoscaling_guard_readable{cluster="lab",group="mnist",guard="busy.http",role="worker"} 0
trainyard_autoscaling_guard_value{cluster="lab",group="mnist",guard="at_least",role="worker"} 3
trainyard_autoscaling_last_decision_timestamp_seconds{cluster="lab",group="mnist",role="worker"} 1.70000000025e+09
trainyard_autoscaling_max_replicas{cluster="lab",group="mnist",role="ps"} 2
trainyard_autoscaling_max_replicas{cluster="lab",group="mnist",role="worker"} 8
trainyard_autoscaling_metric_proposed_replicas{cluster="lab",group="mnist",metric="cpu",role="worker"} 7
trainyard_autoscaling_metric_proposed_replicas{cluster="lab",group="mnist",metric="night",role="worker"} 0
trainyard_autoscaling_metric_value{cluster="lab",group="mnist",metric="cpu",role="worker"} 92.5
trainyard_autoscaling_metric_value{cluster="lab",group="mnist",metric="load",role="worker"} 0
trainyard_autoscaling_metric_value{cluster="lab",group="mnist",metric="�\"",role="worker"} 1
trainyard_autoscaling_min_replicas{cluster="lab",group="mnist",role="ps"} 1
trainyard_autoscaling_min_replicas{cluster="lab",group="mnist",role="worker"} 2
trainyard_autoscaling_recommended_request{cluster="lab",group="mnist",resource="cpus",role="worker"} 2.31
`

func TestPolicies(t *testing.T) {
	if got := answer(t, handler(policies(fullPolicies))); got != everyPolicy {
		t.Errorf("got:%swant:%s", got, everyPolicy)
	}
	if got := answer(t, handler(policies(func() []PolicyStatus { return nil }))); got != "\n" {
		t.Errorf("without policies, got:%s", got)
	}
}

// TestNamesOfPolicies: the names satisfy Prometheus' own linter.
func TestNamesOfPolicies(t *testing.T) {
	problems, err := testutil.CollectAndLint(policies(fullPolicies))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
