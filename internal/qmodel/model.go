package qmodel

import "slices"

// Version is the version of the format that this build reads and writes.
const Version = 1

// Hidden is the number of units in each of the two hidden layers.
const Hidden = 64

// MaxBytes limits the size of a model as text.
const MaxBytes = 256 << 10

// The algorithms that a model can be trained by.
const (
	DQN       = "dqn"
	DoubleDQN = "double-dqn"
)

// Algorithms lists them.
var Algorithms = []string{DQN, DoubleDQN}

// Indexes of the actions in the result of [Model.Values].
const (
	Up = iota
	Stay
	Down
	// NumActions is the number of actions.
	NumActions
)

// Actions are their names, in this order.
var Actions = [NumActions]string{Up: "up", Stay: "stay", Down: "down"}

// Model gives the value of each action in a state.
type Model struct {
	// Algorithm is the one that it was trained by.
	Algorithm string
	// Features are the names of its inputs, in its own order. Mean and Scale normalise them: (value − mean) / scale.
	Features    []string
	Mean, Scale []float64
	// Layers are the two hidden layers, each followed by ReLU, and the output layer with the actions.
	Layers [3]Layer
	// Trained describes how it was trained.
	Trained Trained

	places []int // of Features in a [State]
}

// Layer computes as many values as it has biases from its inputs.
type Layer struct {
	// Weights have one row for each output, and Bias is added to each output.
	Weights, Bias []float32
}

// Trained describes how a model was trained.
type Trained struct {
	// TraceSHA256 is the digest of the load that it was trained with, in hexadecimal.
	TraceSHA256 string `json:"trace_sha256"`
	Seed        uint64 `json:"seed"`
	// Updates is the number of gradient descent steps.
	Updates int `json:"updates"`
	// CapacityLoad is what a member could carry, in units of the trace, and StartupSeconds how long one took to start.
	CapacityLoad   float64 `json:"capacity_load,omitempty"`
	StartupSeconds float64 `json:"startup_seconds,omitempty"`
}

// New returns a model with all weights 0 and features that are not normalised. features must be some of [Features].
func New(algorithm string, features []string) *Model {
	n := len(features)
	m := &Model{
		Algorithm: algorithm, Features: slices.Clone(features), Mean: make([]float64, n), Scale: make([]float64, n),
		places: make([]int, n),
	}
	for i, name := range features {
		m.Scale[i] = 1
		m.places[i], _ = place(name)
	}
	for i, size := range m.sizes() {
		m.Layers[i] = Layer{make([]float32, size.in*size.out), make([]float32, size.out)}
	}
	return m
}

// size is the size of a layer.
type size struct{ in, out int }

func (m *Model) sizes() [3]size {
	return [3]size{{len(m.Features), Hidden}, {Hidden, Hidden}, {Hidden, NumActions}}
}

// Has reports whether the model uses a feature.
func (m *Model) Has(feature int) bool { return slices.Contains(m.Features, Features[feature].Name) }

// Of returns the model's features of a state, in the model's order.
func (m *Model) Of(s State) []float64 {
	features := make([]float64, 0, NumFeatures)
	for _, at := range m.places {
		features = append(features, s[at])
	}
	return features
}

// Values returns the value of each of [Actions] for the model's features, which are in its own order.
//
// Each product is rounded before it is added, as some compilers would otherwise fuse the two operations and get a
// different last bit.
func (m *Model) Values(features []float64) (values [NumActions]float64) {
	var in [NumFeatures]float64
	for i := range m.Features {
		in[i] = (features[i] - m.Mean[i]) / m.Scale[i]
	}
	var first, second [Hidden]float64
	m.Layers[0].apply(in[:len(m.Features)], first[:])
	rectify(first[:])
	m.Layers[1].apply(first[:], second[:])
	rectify(second[:])
	m.Layers[2].apply(second[:], values[:])
	return values
}

// apply computes the outputs of a layer.
func (l *Layer) apply(in, out []float64) {
	for i := range out {
		row := l.Weights[i*len(in):][:len(in)]
		sum := float64(l.Bias[i])
		for j, w := range row {
			sum = float64(float64(w)*in[j]) + sum
		}
		out[i] = sum
	}
}

// rectify replaces negative values by 0.
func rectify(values []float64) {
	for i, v := range values {
		values[i] = max(v, 0)
	}
}
