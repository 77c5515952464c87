package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// LearnedAlgorithm asks a model that was trained what one member more, as many, or one fewer are worth.
type LearnedAlgorithm struct {
	Model LearnedModel `json:"model"`
	// Capacity is how much of the metric one member carries, above 0; DefaultLearnedCapacity where it is 0 and Per is
	// TargetMean.
	Capacity float64 `json:"capacity,omitempty"`
	// Per is TargetMean where it is empty.
	Per TargetPer `json:"per,omitempty"`
	// LatencyBound is what the latency is a share of, in its own unit, and LagCapacity how much lag one member works
	// off in a second: Capacity where it is 0 and Per is TargetTotal.
	LatencyBound float64 `json:"latency_bound,omitempty"`
	LagCapacity  float64 `json:"lag_capacity,omitempty"`
	// Observes are the names of other metrics of the policy, by the features of the model that are made of them.
	Observes map[string]string `json:"observes,omitempty"`
}

// DefaultLearnedCapacity is how much of its utilisation, in percent, a member carries.
const DefaultLearnedCapacity = 100

// Carried is how much of the metric one member carries, with the default filled in.
func (a LearnedAlgorithm) Carried() float64 {
	if a.Capacity == 0 {
		return DefaultLearnedCapacity
	}
	return a.Capacity
}

// LagCarried is how much lag one member works off in a second; 0 where that is not known.
func (a LearnedAlgorithm) LagCarried() float64 {
	if a.LagCapacity == 0 && a.Per == TargetTotal {
		return a.Capacity
	}
	return a.LagCapacity
}

func (a LearnedAlgorithm) validate(ps *Problems, at Path) {
	if a.Model.Digest == "" {
		ps.Add(at.At("model"), "No model", `the algorithm needs a model, as "terraform-provider-trainyard autoscale train" writes it: model = file("dqn.json")`)
	}
	validatePer(ps, at, a.Per)
	validateCapacity(ps, at, a.Capacity, a.Per)
	if a.LatencyBound != 0 {
		checkPositive(ps, at.At("latency_bound"), "Invalid bound", a.LatencyBound)
	}
	if a.LagCapacity != 0 {
		checkPositive(ps, at.At("lag_capacity"), "Invalid capacity", a.LagCapacity)
	}
}

// validateObserves checks that the metrics that learned algorithms observe are there.
func (p AutoscalingPolicy) validateObserves(ps *Problems, name string) {
	a := p.Metrics[name].Algorithm.Learned
	if a == nil {
		return
	}
	at := Path{"metrics", Key(name), "algorithm", "learned", "observes"}
	for _, feature := range slices.Sorted(maps.Keys(a.Observes)) {
		other := a.Observes[feature]
		metric, found := p.Metrics[other]
		switch {
		case other == name:
			ps.Add(at.At(Key(feature)), "Own metric", "%q is the metric that has the algorithm, which is the load already; name another one of the policy", other)
		case !found:
			ps.Add(at.At(Key(feature)), "Unknown metric", "the policy has no metric %q; it has %q", other, slices.Sorted(maps.Keys(p.Metrics)))
			ps.DecidedBy([]Path{at, {"metrics"}})
		case !metric.Algorithm.Measures():
			ps.Add(at.At(Key(feature)), "Metric without a value", "the algorithm of metric %q measures nothing; name one that has a source", other)
			ps.DecidedBy([]Path{at, {"metrics"}})
		}
	}
}

// LearnedModel is a model as text, of which a policy's document has the digest alone: the text is stored apart, as
// [LearnedModelDocument].
type LearnedModel struct {
	// Text is "" where it was not read. Digest is the SHA-256 of the text in hexadecimal, and "" where there is no
	// model.
	Text, Digest string
}

// NewLearnedModel returns the model of a text.
func NewLearnedModel(text string) LearnedModel {
	if text == "" {
		return LearnedModel{}
	}
	sum := sha256.Sum256([]byte(text))
	return LearnedModel{text, hex.EncodeToString(sum[:])}
}

// UnmarshalText reads the model itself, as a configuration has it.
func (m *LearnedModel) UnmarshalText(text []byte) error {
	*m = NewLearnedModel(string(text))
	return nil
}

// MarshalText returns the model itself.
func (m LearnedModel) MarshalText() ([]byte, error) { return []byte(m.Text), nil }

// UnmarshalJSON reads the digest.
func (m *LearnedModel) UnmarshalJSON(data []byte) error {
	*m = LearnedModel{}
	return json.Unmarshal(data, &m.Digest)
}

// MarshalJSON returns the digest.
func (m LearnedModel) MarshalJSON() ([]byte, error) { return json.Marshal(m.Digest) }

// Models are the models of the policy's learned algorithms by their digests.
func (p AutoscalingPolicy) Models() map[string]LearnedModel {
	models := map[string]LearnedModel{}
	for _, m := range p.Metrics {
		if a := m.Algorithm.Learned; a != nil && a.Model.Digest != "" {
			models[a.Model.Digest] = a.Model
		}
	}
	return models
}

// WithModels returns the policy with the texts of its models, by their digests. One that is not there is left without.
func (p AutoscalingPolicy) WithModels(texts map[string]string) AutoscalingPolicy {
	p.Metrics = maps.Clone(p.Metrics)
	for name, m := range p.Metrics {
		if a := m.Algorithm.Learned; a != nil {
			filled := *a
			filled.Model.Text = texts[a.Model.Digest]
			m.Algorithm.Learned = &filled
			p.Metrics[name] = m
		}
	}
	return p
}

// LearnedModelDocument is the text of a model that a policy has. Each policy has its own, so that none is taken from
// another.
type LearnedModelDocument struct {
	Header
	// Policy is the policy's key, and Digest that of the text.
	Policy string `json:"policy"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}

// LearnedModelKind is that of [LearnedModelDocument]. It is large, and only the controller needs it: no plan reads it.
var LearnedModelKind = Kind{Name: "learned-model", Noun: "model of autoscaling policy"}

// Kind returns [LearnedModelKind].
func (*LearnedModelDocument) Kind() Kind { return LearnedModelKind }

// Key is that of [LearnedModelKey].
func (d *LearnedModelDocument) Key() string { return LearnedModelKey(d.Policy, d.Digest) }

// LearnedModelKey is the key of a model of a policy: digests of both, as the policy's key has as many parts as a key
// may have by itself.
func LearnedModelKey(policy, digest string) string {
	sum := sha256.Sum256([]byte(policy))
	return hex.EncodeToString(sum[:keptDigest]) + "/" + digest[:min(len(digest), 2*keptDigest)]
}

// keptDigest is how many bytes of a digest are in a key.
const keptDigest = 16
