package autoscale

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// measureOf identifies what a metric measures: other values have nothing to do with what was learned of these. A new
// lead, threshold or season is not part of it, as the algorithms deal with that themselves. role is the policy's.
func measureOf(m domain.ScalingMetric, role string) (string, error) {
	m = m.Measured(role)
	text, err := json.Marshal(struct {
		Source      domain.ScalingSource `json:"source"`
		Window      *domain.Duration     `json:"window"`
		Aggregation domain.Aggregation   `json:"aggregation"`
	}{m.Source, m.Window, m.Aggregation})
	if err != nil {
		return "", err
	}
	h := fnv.New32a()
	_, _ = h.Write(text) // never fails
	return strconv.FormatUint(uint64(h.Sum32()), 36), nil
}

// recall returns what is remembered of a metric; nothing if it measured something else then.
func (s *State) recall(name, measure string) Memory {
	memory := s.Metrics[name]
	if memory.Of != "" && memory.Of != measure {
		return Memory{}
	}
	return memory
}

// keep stores what is to be remembered of a metric, together with what it measures.
func (s *State) keep(name, measure string, memory Memory) {
	if memory != (Memory{}) {
		memory.Of = measure
	}
	s.Metrics[name] = memory
}

// forgetMetrics drops what is remembered of metrics that the policy no longer has.
func (a *Autoscaler) forgetMetrics(s *State) {
	if len(s.Metrics) <= len(a.metrics) {
		return
	}
	for name := range s.Metrics {
		if _, followed := a.policy.Metrics[name]; !followed {
			delete(s.Metrics, name)
		}
	}
}
