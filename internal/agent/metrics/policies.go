package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// PolicyStatus is the status of an autoscaling policy, as its controller knows it.
type PolicyStatus struct {
	Cluster, Group, Role string
	// Current is the role's current count, and Desired the latest decision.
	Current, Desired int
	// Min and Max are the policy's bounds.
	Min, Max int
	// Metrics are the values of the latest evaluation, by name of the metric or schedule.
	Metrics map[string]PolicyMetric
	// Guards are the latest values of the guards' sources, by name of the guard; nil if a source had no usable value.
	Guards map[string]*float64
	// Recommended is how much members should request, by resource, as far as that is known.
	Recommended map[string]float64
	// Decisions counts the decisions since the controller started, by outcome.
	Decisions map[string]int
	// DecidedAt is the time of the latest decision; zero before the first.
	DecidedAt time.Time
}

// PolicyMetric is the value of a policy's metric or schedule, and the count that it proposes.
type PolicyMetric struct {
	// Value is nil if there was no usable one.
	Value *float64
	// Count is nil if none was proposed.
	Count *int
}

// The labels of a policy and of its metrics, guards, resources and decisions.
var (
	ofPolicy       = []string{"cluster", "group", "role"}
	ofPolicyMetric = slices.Concat(ofPolicy, []string{"metric"})
	ofGuard        = slices.Concat(ofPolicy, []string{"guard"})
	ofResource     = slices.Concat(ofPolicy, []string{"resource"})
	ofDecisions    = slices.Concat(ofPolicy, []string{"outcome"})
)

var (
	policyCurrent = gauge("autoscaling_current_replicas", "Members that the role should have.", ofPolicy...)
	policyDesired = gauge("autoscaling_desired_replicas", "Members that the policy last decided on.", ofPolicy...)
	policyMin     = gauge("autoscaling_min_replicas", "Minimum number of members that the policy allows.",
		ofPolicy...)
	policyMax = gauge("autoscaling_max_replicas", "Maximum number of members that the policy allows.",
		ofPolicy...)
	policyValue = gauge("autoscaling_metric_value",
		"Value of a metric of the policy. Absent if it is missing or too old.", ofPolicyMetric...)
	policyProposed = gauge("autoscaling_metric_proposed_replicas",
		"Members that a metric or schedule proposes. Absent if it proposes none.", ofPolicyMetric...)
	policyGuardValue = gauge("autoscaling_guard_value",
		"Value from the source of a guard. Absent if it can't be read.", ofGuard...)
	policyGuardRead = gauge("autoscaling_guard_readable",
		"1 if the source of a guard returns a value. 0 if it can't be read: no member is removed then.", ofGuard...)
	policyRecommended = gauge("autoscaling_recommended_request",
		"What a member should request of a resource: processors (cpus) or MiB (memory_mib).", ofResource...)
	policyDecisions = counter("autoscaling_decisions_total", "Decisions since the controller started, by outcome.",
		ofDecisions...)
	policyDecided = gauge("autoscaling_last_decision_timestamp_seconds", "Time of the policy's last decision.",
		ofPolicy...)
)

// policies exports autoscaling policies.
type policies func() []PolicyStatus

// Describe describes nothing, as the metrics depend on the policies.
func (p policies) Describe(chan<- *prometheus.Desc) {}

// Collect exports all policies.
func (p policies) Collect(to chan<- prometheus.Metric) {
	for _, status := range p() {
		status.collect(to)
	}
}

func (s PolicyStatus) collect(to chan<- prometheus.Metric) {
	t := newSeries(to, s.Cluster, s.Group, s.Role)
	whole(t, policyMin, 1, &s.Min)
	whole(t, policyMax, 1, &s.Max)
	whole(t, policyCurrent, 1, &s.Current)
	if s.DecidedAt.IsZero() {
		return
	}
	whole(t, policyDesired, 1, &s.Desired)
	t.value(policyDecided, 1, new(float64(s.DecidedAt.UnixMilli())/1000))
	for name, m := range s.Metrics {
		t := newSeries(to, s.Cluster, s.Group, s.Role, name)
		t.value(policyValue, 1, m.Value)
		whole(t, policyProposed, 1, m.Count)
	}
	for name, value := range s.Guards {
		t, readable := newSeries(to, s.Cluster, s.Group, s.Role, name), 0
		if value != nil {
			readable = 1
		}
		whole(t, policyGuardRead, 1, &readable)
		t.value(policyGuardValue, 1, value)
	}
	for resource, amount := range s.Recommended {
		newSeries(to, s.Cluster, s.Group, s.Role, resource).value(policyRecommended, 1, &amount)
	}
	for outcome, n := range s.Decisions {
		whole(newSeries(to, s.Cluster, s.Group, s.Role, outcome), policyDecisions, 1, &n)
	}
}
