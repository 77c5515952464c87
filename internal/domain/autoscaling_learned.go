package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// LearnedAlgorithm asks a trained model for the value of having one more member, as many, or one fewer.
type LearnedAlgorithm struct {
	Model LearnedModel `json:"model"`
	// Capacity is how much of the metric one member can carry, above 0. It may be 0 if Per is TargetMean, which means
	// DefaultLearnedCapacity.
	Capacity float64 `json:"capacity,omitempty"`
	// Per defaults to TargetMean.
	Per TargetPer `json:"per,omitempty"`
	// LatencyBound is what latency is measured against, in its own unit. LagCapacity is how much lag one member works
	// off per second; 0 means Capacity if Per is TargetTotal.
	LatencyBound float64 `json:"latency_bound,omitempty"`
	LagCapacity  float64 `json:"lag_capacity,omitempty"`
	// Observes maps features of the model to the names of the policy's other metrics that they are computed from.
	Observes map[string]string `json:"observes,omitempty"`
}

// DefaultLearnedCapacity is how much utilisation a member can carry, in percent.
const DefaultLearnedCapacity = 100

// Carried returns how much of the metric one member can carry, with the default filled in.
func (a LearnedAlgorithm) Carried() float64 {
	if a.Capacity == 0 {
		return DefaultLearnedCapacity
	}
	return a.Capacity
}

// LagCarried returns how much lag one member works off per second; 0 if unknown.
func (a LearnedAlgorithm) LagCarried() float64 {
	if a.LagCapacity == 0 && a.Per == TargetTotal {
		return a.Capacity
	}
	return a.LagCapacity
}

func (a LearnedAlgorithm) validate(ps *Problems, at Path) {
	if a.Model.Digest == "" {
		ps.Add(at.At("model"), "No model",
			`the algorithm needs a model written by "terraform-provider-trainyard autoscale train": `+
				`model = file("dqn.json")`)
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

// validateObserves checks that the metrics that a learned algorithm observes exist.
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
			ps.Add(at.At(Key(feature)), "Own metric",
				"%q is the metric with this algorithm, and already the load; use another metric of the policy", other)
		case !found:
			ps.Add(at.At(Key(feature)), "Unknown metric", "the policy has no metric %q; it has %q", other,
				slices.Sorted(maps.Keys(p.Metrics)))
			ps.DecidedBy([]Path{at, {"metrics"}})
		case !metric.Algorithm.Measures():
			ps.Add(at.At(Key(feature)), "Metric without a value",
				"metric %q has no source, so there is nothing to observe; use one that has a source", other)
			ps.DecidedBy([]Path{at, {"metrics"}})
		}
	}
}

// LearnedModel is a model as text. A policy's document holds only its digest; the text is stored separately, as
// [LearnedModelDocument].
type LearnedModel struct {
	// Text is "" if it was not read. Digest is the SHA-256 of the text in hexadecimal; "" if there is no model.
	Text, Digest string
}

// NewLearnedModel returns the model with this text.
func NewLearnedModel(text string) LearnedModel {
	if text == "" {
		return LearnedModel{}
	}
	sum := sha256.Sum256([]byte(text))
	return LearnedModel{text, hex.EncodeToString(sum[:])}
}

// UnmarshalText reads the model's text, as in a configuration.
func (m *LearnedModel) UnmarshalText(text []byte) error {
	*m = NewLearnedModel(string(text))
	return nil
}

// MarshalText returns the model's text.
func (m LearnedModel) MarshalText() ([]byte, error) { return []byte(m.Text), nil }

// UnmarshalJSON reads the digest.
func (m *LearnedModel) UnmarshalJSON(data []byte) error {
	*m = LearnedModel{}
	return json.Unmarshal(data, &m.Digest)
}

// MarshalJSON returns the digest.
func (m LearnedModel) MarshalJSON() ([]byte, error) { return json.Marshal(m.Digest) }

// Models returns the models of the policy's learned algorithms by digest.
func (p AutoscalingPolicy) Models() map[string]LearnedModel {
	models := map[string]LearnedModel{}
	for _, m := range p.Metrics {
		if a := m.Algorithm.Learned; a != nil && a.Model.Digest != "" {
			models[a.Model.Digest] = a.Model
		}
	}
	return models
}

// WithModels returns the policy with the texts of its models filled in by digest. A missing text is left empty.
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

// LearnedModelDocument is the text of a policy's model. Policies do not share these documents, so that deleting one
// takes no model from another.
type LearnedModelDocument struct {
	Header
	// Policy is the policy's key, and Digest the digest of Text.
	Policy string `json:"policy"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}

// LearnedModelKind is the kind of [LearnedModelDocument]. Models are large and only the controller needs them: plans do
// not read them.
var LearnedModelKind = Kind{Name: "learned-model", Noun: "model of autoscaling policy"}

// Kind returns [LearnedModelKind].
func (*LearnedModelDocument) Kind() Kind { return LearnedModelKind }

// Key returns the [LearnedModelKey] of the document.
func (d *LearnedModelDocument) Key() string { return LearnedModelKey(d.Policy, d.Digest) }

// LearnedModelKey returns the key of a policy's model. It holds digests of both, as the policy's key alone already has
// as many parts as a key may have.
func LearnedModelKey(policy, digest string) string {
	sum := sha256.Sum256([]byte(policy))
	return hex.EncodeToString(sum[:keptDigest]) + "/" + digest[:min(len(digest), 2*keptDigest)]
}

// keptDigest is how many bytes of a digest a key holds.
const keptDigest = 16
