package controller

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestObservedMetric: a metric without an algorithm is in the history with its value, and asks for nothing.
func TestObservedMetric(t *testing.T) {
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		p.Metrics["seen"] = domain.ScalingMetric{Source: p.Metrics["cpu"].Source}
	})
	s := l.controller()
	l.load = 1.4
	if got := l.pass(s, 10*time.Second); got[len(got)-1] != 3 {
		t.Errorf("the counts were %v", got)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	entries := l.entries(t, l.now, autoscale.Selection{})
	for _, e := range entries {
		for _, m := range e.Metrics {
			if m.Name == "seen" && (m.Value == nil || m.Count != nil) {
				t.Errorf("it is shown as %+v", m)
			}
		}
	}
	if status := s.board.statuses()[0].Metrics["seen"]; status.Value == nil || status.Count != nil || len(entries) == 0 {
		t.Errorf("Prometheus is told %+v, and there are %d entries", status, len(entries))
	}
}
