package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// TestLearned: the controller reads the policy's model, asks it, and records its explanation. While the model is
// missing, the policy changes nothing, and other policies keep working.
func TestLearned(t *testing.T) {
	model := domain.NewLearnedModel(qmodeltest.Text(qmodeltest.Band(0.4, 0.8)))
	l := newLab(t, func(p *domain.AutoscalingPolicy) {
		m := p.Metrics["cpu"]
		m.Algorithm = domain.ScalingAlgorithm{Learned: &domain.LearnedAlgorithm{Model: model, Capacity: 1}}
		p.Metrics["cpu"] = m
		p.ScaleIn.Stabilisation = new(domain.Duration(0))
	})
	s := l.controller()
	l.load = 1.9
	if err := l.look(s); err == nil ||
		!strings.Contains(err.Error(), `model `+model.Digest[:12]+` of autoscaling policy "job/worker"`) {
		t.Errorf("without a model: %v", err)
	}
	_, err := engine.Put(t.Context(), l,
		domain.LearnedModelDocument{Policy: "job/worker", Digest: model.Digest, Text: model.Text})
	l.must(nil, err)
	if got := l.pass(s, 20*time.Second); got[len(got)-1] != 3 {
		t.Errorf("under load, the counts are %v", got)
	}
	l.load = 1
	if got := l.pass(s, 20*time.Second); got[len(got)-1] != 2 {
		t.Errorf("with less of it, the counts are %v", got)
	}
	l.must(nil, s.history.Flush(t.Context(), l.now))
	history := ""
	for _, e := range l.entries(t, l.now, autoscale.Selection{}) {
		history += e.Why() + "\n"
	}
	if want := "cpu: one more is worth 0.15, as many is worth 0, one fewer is worth 0"; !strings.Contains(history,
		want) {
		t.Errorf("the history does not say %q:\n%s", want, history)
	}
}
