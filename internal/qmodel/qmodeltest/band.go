// Package qmodeltest makes models for tests.
package qmodeltest

import "github.com/trainyard/terraform-provider-trainyard/internal/qmodel"

// Band returns a model that only looks at the load: one more member above upper, one fewer below lower, and as many in
// between.
func Band(lower, upper float32) *qmodel.Model {
	m := qmodel.New(qmodel.DQN, []string{qmodel.Features[qmodel.Load].Name})
	m.Layers[0].Weights[0] = 1 // the load
	second := &m.Layers[1]
	second.Weights[0], second.Bias[0] = 1, -upper             // how far it is above the band
	second.Weights[qmodel.Hidden], second.Bias[1] = -1, lower // how far it is below
	m.Layers[2].Weights[qmodel.Up*qmodel.Hidden] = 1
	m.Layers[2].Weights[qmodel.Down*qmodel.Hidden+1] = 1
	return m
}

// Text returns a model as text.
func Text(m *qmodel.Model) string {
	text, err := m.Encode()
	if err != nil {
		panic(err)
	}
	return string(text)
}
