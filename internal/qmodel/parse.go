package qmodel

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// file is a model as it is stored.
type file struct {
	Version   int       `json:"version"`
	Algorithm string    `json:"algorithm"`
	Features  []string  `json:"features"`
	Mean      []float64 `json:"mean"`
	Scale     []float64 `json:"scale"`
	Actions   []string  `json:"actions"`
	Hidden    []int     `json:"hidden"`
	// Weights are little-endian float32s in Base64: W1, b1, W2, b2, W3, b3, where each W has a row for each output of
	// its layer.
	Weights string  `json:"weights"`
	Trained Trained `json:"trained"`
}

// hidden are the sizes of the hidden layers.
var hidden = []int{Hidden, Hidden}

// Parse parses a model, and says what is wrong if it is not one.
func Parse(text []byte) (*Model, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the model has %d bytes; at most %d are allowed", len(text), MaxBytes)
	}
	f, err := read(text)
	if err != nil {
		return nil, err
	}
	m := New(f.Algorithm, f.Features)
	m.Mean, m.Scale, m.Trained = f.Mean, f.Scale, f.Trained
	weights, err := base64.StdEncoding.Strict().DecodeString(f.Weights)
	if err != nil {
		return nil, fmt.Errorf("weights are not Base64: %w", err)
	}
	if err := m.setWeights(weights); err != nil {
		return nil, err
	}
	return m, nil
}

// read parses a file, and checks everything except its weights.
func read(text []byte) (f file, err error) {
	var head struct {
		Version *int `json:"version"`
	}
	// The version comes first, as files of other versions may look different.
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&head); err != nil {
		return f, fmt.Errorf("the model is not valid JSON as written by autoscale train: %w", ended(err))
	}
	if head.Version == nil || *head.Version != Version {
		return f, fmt.Errorf("version is %s; this version of Trainyard supports version %d", versionOf(head.Version),
			Version)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, fmt.Errorf("the model is not valid JSON as written by autoscale train: %w", ended(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return f, fmt.Errorf("trailing data after the model, from byte %d", decoder.InputOffset())
	}
	return f, f.check()
}

// ended replaces the error for a truncated text.
func ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the file is truncated")
	}
	return err
}

func versionOf(version *int) string {
	if version == nil {
		return "missing"
	}
	return fmt.Sprint(*version)
}

func (f file) check() error {
	if !slices.Contains(Algorithms, f.Algorithm) {
		return fmt.Errorf("unknown algorithm %q; use one of %q", f.Algorithm, Algorithms)
	}
	if err := checkFeatures(f.Features); err != nil {
		return err
	}
	if !slices.Equal(f.Actions, Actions[:]) {
		return fmt.Errorf("actions must be %q, in this order, got %q", Actions, f.Actions)
	}
	if !slices.Equal(f.Hidden, hidden) {
		return fmt.Errorf("hidden must be %v, got %v", hidden, f.Hidden)
	}
	for _, list := range []struct {
		name   string
		values []float64
	}{{"mean", f.Mean}, {"scale", f.Scale}} {
		if len(list.values) != len(f.Features) {
			return fmt.Errorf("%s has %d values, but there are %d features; it needs one for each", list.name,
				len(list.values), len(f.Features))
		}
	}
	return checkNormal(f.Features, f.Mean, f.Scale)
}

func checkFeatures(features []string) error {
	for i, name := range features {
		if _, known := place(name); !known {
			return fmt.Errorf("unknown feature %q; known features are %q", name, FeatureNames())
		}
		if slices.Contains(features[:i], name) {
			return fmt.Errorf("duplicate feature %q", name)
		}
	}
	if !slices.Contains(features, Features[Load].Name) {
		return fmt.Errorf("features are %q; %q is missing, which every model needs", features, Features[Load].Name)
	}
	return nil
}

func checkNormal(features []string, mean, scale []float64) error {
	for i, name := range features {
		if !finite(mean[i]) {
			return fmt.Errorf("mean of feature %q must be finite, got %v", name, mean[i])
		}
		if !finite(scale[i]) || scale[i] <= 0 {
			return fmt.Errorf("scale of feature %q must be finite and above 0, got %v", name, scale[i])
		}
	}
	return nil
}

// setWeights reads the weights of all layers.
func (m *Model) setWeights(data []byte) error {
	needed := 0
	for _, size := range m.sizes() {
		needed += (size.in + 1) * size.out
	}
	if len(data) != 4*needed {
		return fmt.Errorf(
			"weights have %d bytes; expected %d, which are %d float32s for %d features and two layers of %d "+
				"hidden units",
			len(data), 4*needed, needed, len(m.Features), Hidden,
		)
	}
	for i := range m.Layers {
		for _, values := range [][]float32{m.Layers[i].Weights, m.Layers[i].Bias} {
			for j := range values {
				values[j] = math.Float32frombits(binary.LittleEndian.Uint32(data))
				if data = data[4:]; !finite(float64(values[j])) {
					return fmt.Errorf("weights must be finite, got %v at index %d of layer %d", values[j], j, i+1)
				}
			}
		}
	}
	return nil
}

// Encode encodes a model as [Parse] reads it. It returns an error for a model that Parse would reject.
func (m *Model) Encode() ([]byte, error) {
	var weights []byte
	for _, layer := range m.Layers {
		for _, values := range [][]float32{layer.Weights, layer.Bias} {
			for _, v := range values {
				weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(v))
			}
		}
	}
	f := file{
		Version: Version, Algorithm: m.Algorithm, Features: m.Features, Mean: m.Mean, Scale: m.Scale,
		Actions: Actions[:], Hidden: hidden,
		Weights: base64.StdEncoding.EncodeToString(weights), Trained: m.Trained,
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	_, err = Parse(text)
	return text, err
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
