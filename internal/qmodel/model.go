package qmodel

import "slices"

// Version is that of the format that this build reads and writes.
const Version = 1

// Hidden is the number of units of each of the two hidden layers.
const Hidden = 64

// MaxBytes bounds the size of a model as text.
const MaxBytes = 256 << 10

// The algorithms that a model may have been trained by.
const (
	DQN       = "dqn"
	DoubleDQN = "double-dqn"
)

// Algorithms lists them.
var Algorithms = []string{DQN, DoubleDQN}

// Places of the actions in what [Model.Values] returns.
const (
	Up = iota
	Stay
	Down
	// NumActions is how many there are.
	NumActions
)

// Actions are their names in this order.
var Actions = [NumActions]string{Up: "up", Stay: "stay", Down: "down"}

// Model says what each action is worth in a state.
type Model struct {
	// Algorithm is how it was trained.
	Algorithm string
	// Features are the names of those that it takes, in its own order; Mean and Scale are what they are normalised
	// with: (value − mean) / scale.
	Features    []string
	Mean, Scale []float64
	// Layers are the two hidden layers, after which negative values are 0, and that of the actions.
	Layers [3]Layer
	// Trained says by what it was trained.
	Trained Trained

	places []int // of Features in a [State]
}

// Layer makes as many values as it has biases of those that go in.
type Layer struct {
	// Weights are one row for each value that comes out, and Bias is what is added to each.
	Weights, Bias []float32
}

// Trained says by what a model was trained.
type Trained struct {
	// TraceSHA256 is the digest of the load that it was trained with, in hexadecimal.
	TraceSHA256 string `json:"trace_sha256"`
	Seed        uint64 `json:"seed"`
	// Updates is the number of steps of gradient descent.
	Updates int `json:"updates"`
	// CapacityLoad is what a member carried, in units of the trace, and StartupSeconds how long one took to start.
	CapacityLoad   float64 `json:"capacity_load,omitempty"`
	StartupSeconds float64 `json:"startup_seconds,omitempty"`
}

// New returns a model whose weights are all 0, and which leaves its features as they are. They are to be some of
// [Features].
func New(algorithm string, features []string) *Model {
	n := len(features)
	m := &Model{Algorithm: algorithm, Features: slices.Clone(features), Mean: make([]float64, n), Scale: make([]float64, n), places: make([]int, n)}
	for i, name := range features {
		m.Scale[i] = 1
		m.places[i], _ = place(name)
	}
	for i, size := range m.sizes() {
		m.Layers[i] = Layer{make([]float32, size.in*size.out), make([]float32, size.out)}
	}
	return m
}

// size is that of a layer.
type size struct{ in, out int }

func (m *Model) sizes() [3]size {
	return [3]size{{len(m.Features), Hidden}, {Hidden, Hidden}, {Hidden, NumActions}}
}

// Has reports whether the model takes a feature.
func (m *Model) Has(feature int) bool { return slices.Contains(m.Features, Features[feature].Name) }

// Of returns what the model takes of a state, in its order.
func (m *Model) Of(s State) []float64 {
	features := make([]float64, 0, NumFeatures)
	for _, at := range m.places {
		features = append(features, s[at])
	}
	return features
}

// Values returns what each of [Actions] is worth by the model's features, in its order.
//
// Each product is rounded before it is added: compilers for some processors would else do both at once, and get another
// last bit.
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

// apply makes the values of a layer.
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

// rectify has negative values be 0.
func rectify(values []float64) {
	for i, v := range values {
		values[i] = max(v, 0)
	}
}
