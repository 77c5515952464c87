package qmodel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// random returns a model with these features, or all of them, and weights of every size.
func random(seed uint64, features ...string) *Model {
	if len(features) == 0 {
		features = FeatureNames()
	}
	r := rand.New(rand.NewPCG(seed, 0))
	m := New(DoubleDQN, features)
	for i := range m.Features {
		m.Mean[i], m.Scale[i] = r.Float64()-0.5, r.Float64()+0.1
	}
	for i := range m.Layers {
		for _, values := range [][]float32{m.Layers[i].Weights, m.Layers[i].Bias} {
			for j := range values {
				values[j] = float32(r.NormFloat64() / 4)
			}
		}
	}
	m.Trained = Trained{TraceSHA256: strings.Repeat("ab", 32), Seed: seed, Updates: 50_000}
	return m
}

func encoded(tb testing.TB, m *Model) []byte {
	tb.Helper()
	text, err := m.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// TestGolden checks that models give bit-identical values on any processor to those in testdata/values.txt.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	r := rand.New(rand.NewPCG(42, 0))
	for seed := range uint64(8) {
		m := random(seed)
		for range 8 {
			var state State
			for i := range state {
				state[i] = 8*r.Float64() - 4
			}
			values := m.Values(m.Of(state))
			fmt.Fprintf(&got, "%016x %016x %016x\n", math.Float64bits(values[Up]), math.Float64bits(values[Stay]),
				math.Float64bits(values[Down]))
		}
	}
	const golden = "testdata/values.txt"
	if os.Getenv("TRAINYARD_TEST_UPDATE") != "" {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

// TestValues compares a network with a second computation from its definition.
func TestValues(t *testing.T) {
	m := random(3, "cpu", "load")
	in := []float64{0.7, 1.3}
	values := make([]float64, len(in))
	for i := range in {
		values[i] = (in[i] - m.Mean[i]) / m.Scale[i]
	}
	for i, layer := range m.Layers {
		next := make([]float64, len(layer.Bias))
		for j := range next {
			for k, v := range values {
				next[j] += float64(layer.Weights[j*len(values)+k]) * v
			}
			if next[j] += float64(layer.Bias[j]); next[j] < 0 && i < 2 {
				next[j] = 0
			}
		}
		values = next
	}
	got := m.Values(in)
	for i := range got {
		if math.Abs(got[i]-values[i]) > 1e-9 {
			t.Errorf("%s is worth %v, want %v", Actions[i], got[i], values[i])
		}
	}
	if got := m.Of(State{Load: 1.3, CPU: 0.7, P99: 9}); !cmp.Equal(got, in) {
		t.Errorf("of a state it takes %v, want %v", got, in)
	}
}

func TestEncode(t *testing.T) {
	for _, m := range []*Model{random(1), random(2, "load"), random(3, "skew", "load", "p99")} {
		text := encoded(t, m)
		got, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, cmp.AllowUnexported(Model{})); diff != "" {
			t.Error(diff)
		}
		if again := encoded(t, got); !bytes.Equal(text, again) {
			t.Error("written again, it is another text")
		}
		if len(text) > 40_000 {
			t.Errorf("it has %d bytes", len(text))
		}
	}
}

// TestParse checks that invalid models are rejected, with what is wrong and what is allowed.
func TestParse(t *testing.T) {
	good := string(encoded(t, random(1, "load", "cpu")))
	weights := good[strings.Index(good, `"weights": "`)+len(`"weights": "`):]
	weights = weights[:strings.IndexByte(weights, '"')]
	replaced := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the model has no %q: %s", old, good)
		}
		return strings.Replace(good, old, with, 1)
	}
	part := func(name string) string { // of the list with this name
		from := strings.Index(good, fmt.Sprintf("%q: [", name))
		return good[from : from+strings.IndexByte(good[from:], ']')+1]
	}
	nan := random(1, "load")
	nan.Layers[1].Weights[7] = float32(math.NaN())
	if _, err := nan.Encode(); err == nil || !strings.Contains(err.Error(), "NaN at index 7 of layer 2") {
		t.Errorf("NaN is encoded: %v", err)
	}
	for name, test := range map[string]struct{ text, says string }{
		"nothing":          {"", "truncated"},
		"no JSON":          {"weights", "not valid JSON as written by autoscale train"},
		"a truncated file": {good[:len(good)/2], "truncated"},
		"too large":        {good + strings.Repeat(" ", MaxBytes), "at most 262144 are allowed"},
		"more after it":    {good + "{}", "trailing data after the model"},
		"no version": {
			replaced(`"version": 1,`, ""), "version is missing; this version of Trainyard supports version 1",
		},
		"another version": {
			replaced(`"version": 1`, `"version": 2, "layers": []`),
			"version is 2; this version of Trainyard supports version 1",
		},
		"another attribute": {replaced(`"algorithm"`, `"momentum": 1, "algorithm"`), `unknown field "momentum"`},
		"another algorithm": {
			replaced("double-dqn", "sarsa"), `unknown algorithm "sarsa"; use one of ["dqn" "double-dqn"]`,
		},
		"an unknown feature": {replaced(`"cpu"`, `"moon"`), `unknown feature "moon"; known features are ["load" `},
		"a feature twice":    {replaced(`"cpu"`, `"load"`), `duplicate feature "load"`},
		"no load":            {replaced(`"load"`, `"skew"`), `"load" is missing`},
		"no features":        {replaced(part("features"), `"features": []`), `"load" is missing`},
		"too few means":      {replaced(part("mean"), `"mean": [0]`), "mean has 1 values, but there are 2 features"},
		"too many scales": {
			replaced(part("scale"), `"scale": [1, 1, 1]`), "scale has 3 values, but there are 2 features",
		},
		"a scale of 0": {
			replaced(part("scale"), `"scale": [1, 0]`), `scale of feature "cpu" must be finite and above 0, got 0`,
		},
		"a scale below 0": {
			replaced(part("scale"), `"scale": [-1, 1]`), `scale of feature "load" must be finite and above 0, got -1`,
		},
		"a mean of NaN":    {replaced(part("mean"), `"mean": [NaN, 0]`), "not valid JSON"},
		"an infinite mean": {replaced(part("mean"), `"mean": [1e999, 0]`), "not valid JSON"},
		"other actions": {
			replaced(`"up",`, `"more",`),
			`actions must be ["up" "stay" "down"], in this order, got ["more" "stay" "down"]`,
		},
		"another size":      {replaced(part("hidden"), `"hidden": [32, 64]`), "hidden must be [64 64], got [32 64]"},
		"truncated weights": {replaced(weights, weights[:len(weights)-8]), "weights have"},
		"half a character":  {replaced(weights, weights[:len(weights)-3]), "weights are not Base64"},
		"other characters":  {replaced(weights, "!"+weights[1:]), "weights are not Base64"},
		"weights of NaN": {
			replaced(weights, "AADAfwAA"+weights[8:]), "weights must be finite, got NaN at index 0 of layer 1",
		},
		"infinite weights": {
			replaced(weights, "AACAfwAA"+weights[8:]), "weights must be finite, got +Inf at index 0 of layer 1",
		},
	} {
		if _, err := Parse([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, and not %q", name, err, test.says)
		}
	}
}

// FuzzParse checks that any model that can be read can also be asked, and stays the same when written and read again.
func FuzzParse(f *testing.F) {
	text := encoded(f, random(2, "load"))
	f.Add(text)
	f.Add(text[:len(text)-20])
	f.Add([]byte(
		`{"version":1,"algorithm":"dqn","features":["load"],"mean":[0],"scale":[1],"actions":["up","stay","down"],"hidden":[64,64],"weights":"AAAA","trained":{}}`,
	))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		m.Values(m.Of(State{}))
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(again)
		if err != nil {
			t.Fatal(err)
		}
		if once, err := read.Encode(); err != nil || !bytes.Equal(once, again) {
			t.Errorf("read and written again, it is another one (%v)", err)
		}
	})
}

// TestDocumented checks that the guide has a row for each feature.
func TestDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../templates/guides/autoscaling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Features {
		name := "`" + f.Name + "`"
		if f.Observed {
			name += " (observed)"
		}
		if row := fmt.Sprintf("| %s | %s | %s |\n", name, f.Unit, f.Doc); !strings.Contains(string(guide), row) {
			t.Errorf("the guide has no row %q", row)
		}
	}
}

// BenchmarkValues measures some 5,000 multiplications, which take a few microseconds.
func BenchmarkValues(b *testing.B) {
	m := random(1)
	features := m.Of(State{Load: 0.8, CPU: 0.6, Count: 0.5})
	for b.Loop() {
		m.Values(features)
	}
}
