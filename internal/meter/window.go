package meter

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// window holds the stored values of a source. It is never empty.
type window struct {
	// length is the longest requested window, and asked the time of the last request.
	length time.Duration
	asked  time.Time
	// values are ordered by time, at most one per second. begun is when the second of the newest value began.
	values []value
	begun  time.Time
}

// remember adds a value to its source's window, and returns the measurement over the question's window.
func (m *Meter) remember(q Question, v value, now time.Time) autoscale.Measurement {
	key, err := windowKey(q)
	if err != nil {
		return missing(err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.windows[key]
	if w == nil {
		w = &window{}
		m.windows[key] = w
	}
	over := time.Duration(*q.Window)
	w.length, w.asked = max(w.length, over), now
	w.add(v)
	return w.measurement(over, q.Aggregation)
}

// windowKey identifies windows by what is asked for.
func windowKey(q Question) (string, error) {
	key, err := json.Marshal(q.Source)
	return string(key), err
}

// Window is the stored values of a source, for a meter that continues with them.
type Window struct {
	// Length is the longest requested window.
	Length domain.Duration `json:"length"`
	// Values are ordered by time, at most one per second.
	Values []autoscale.At[float64] `json:"values"`
}

// Windows returns the stored values for these questions, with keys for [Meter.Restore]; nil if there are none.
func (m *Meter) Windows(questions []Question) map[string]Window {
	m.mu.Lock()
	defer m.mu.Unlock()
	var remembered map[string]Window
	for _, q := range questions {
		key, err := windowKey(q)
		w := m.windows[key]
		if q.Window == nil || err != nil || w == nil {
			continue
		}
		values := make([]autoscale.At[float64], len(w.values))
		for i, v := range w.values {
			values[i] = autoscale.At[float64]{At: v.at, Value: v.value}
		}
		if remembered == nil {
			remembered = map[string]Window{}
		}
		remembered[key] = Window{domain.Duration(w.length), values}
	}
	return remembered
}

// Restore takes over the stored values of another meter for sources without any here.
func (m *Meter) Restore(remembered map[string]Window, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, former := range remembered {
		if m.windows[key] != nil || len(former.Values) == 0 {
			continue
		}
		w := &window{length: time.Duration(former.Length), asked: now}
		for _, v := range former.Values {
			w.values = append(w.values, value{v.Value, v.At})
		}
		w.begun = w.values[len(w.values)-1].at
		m.windows[key] = w
	}
}

// add stores a value. One within a second of the newest value's begin replaces it, which bounds their number. If the
// clock was set back, all earlier values are dropped.
func (w *window) add(v value) {
	switch since := v.at.Sub(w.begun); {
	case since < -domain.MinMetricWindow:
		w.values = nil
	case len(w.values) > 0 && since < 0:
		return // a concurrent Read was faster
	case len(w.values) > 0 && since < domain.MinMetricWindow:
		w.values[len(w.values)-1] = v
		return
	}
	w.values = slices.DeleteFunc(w.values, func(old value) bool { return v.at.Sub(old.at) > w.length })
	w.values, w.begun = append(w.values, v), v.at
}

// measurement aggregates the values of a period up to the newest one.
func (w *window) measurement(over time.Duration, a domain.Aggregation) autoscale.Measurement {
	newest := w.values[len(w.values)-1]
	var values []float64
	for _, v := range w.values {
		if newest.at.Sub(v.at) <= over {
			values = append(values, v.value)
		}
	}
	return autoscale.Measurement{Value: *pick(domain.MeasureOf(values), a), At: newest.at}
}

// forget drops windows that nobody has asked for during their own length.
func (m *Meter) forget(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.windows, func(_ string, w *window) bool { return now.Sub(w.asked) > w.length })
}
