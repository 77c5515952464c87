package controller

import (
	"maps"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/metrics"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// board holds what the metrics endpoint shows of each policy since the controller started. It is safe for concurrent
// use.
type board struct {
	mu       sync.Mutex
	policies map[string]metrics.PolicyStatus
}

func newBoard() *board { return &board{policies: map[string]metrics.PolicyStatus{}} }

// show records a decision, or its outcome.
func (b *board) show(policy domain.AutoscalingPolicy, e autoscale.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := metrics.PolicyStatus{
		Cluster: policy.Cluster, Group: policy.Group, Role: policy.Role, Current: e.From, Desired: e.To,
		Min: policy.Min, Max: policy.Max, DecidedAt: e.Until,
		Metrics:   make(map[string]metrics.PolicyMetric, len(e.Metrics)),
		Decisions: maps.Clone(b.policies[policy.Key()].Decisions),
	}
	if status.Decisions == nil {
		status.Decisions = map[string]int{}
	}
	status.Decisions[string(e.Outcome)]++
	if e.Scaled() {
		status.Current = e.To
	}
	for _, v := range e.Vertical {
		if v.Target != nil {
			if status.Recommended == nil {
				status.Recommended = map[string]float64{}
			}
			status.Recommended[v.Name] = *v.Target
		}
	}
	for _, g := range e.Guards {
		if status.Guards == nil {
			status.Guards = map[string]*float64{}
		}
		status.Guards[g.Name] = g.Value
	}
	for _, m := range e.Metrics {
		status.Metrics[m.Name] = metrics.PolicyMetric{Value: m.Value, Count: m.Count}
	}
	b.policies[policy.Key()] = status
}

// remove forgets a policy.
func (b *board) remove(policy string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.policies, policy)
}

// statuses returns the status of each policy, sorted by key.
func (b *board) statuses() []metrics.PolicyStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	statuses := make([]metrics.PolicyStatus, 0, len(b.policies))
	for _, key := range slices.Sorted(maps.Keys(b.policies)) {
		statuses = append(statuses, b.policies[key])
	}
	return statuses
}
