package meter

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// window is what is remembered of a source. After a restart of the controller it fills anew; there is a value from the first one on.
type window struct {
	// length is that of the longest window that is asked for, and asked when it was last.
	length time.Duration
	asked  time.Time
	// values are the oldest first, and no more than one a second. The place of the newest was begun at a time.
	values []value
	begun  time.Time
}

// remember adds a value to those of its source, and returns the measurement of the question's window.
func (m *Meter) remember(q Question, v value, now time.Time) autoscale.Measurement {
	key, err := json.Marshal(q.Source)
	if err != nil {
		return missing(err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.windows[string(key)]
	if w == nil {
		w = &window{}
		m.windows[string(key)] = w
	}
	over := time.Duration(*q.Window)
	w.length, w.asked = max(w.length, over), now
	w.add(v)
	return w.measurement(over, q.Aggregation)
}

// add remembers a value. One that comes within a second of the newest place takes that: so their number is bounded, however often it is asked. Where the
// clock was set back, all before is forgotten.
func (w *window) add(v value) {
	switch since := v.at.Sub(w.begun); {
	case since < -domain.MinMetricWindow:
		w.values = nil
	case len(w.values) > 0 && since < 0:
		return // another Read was faster
	case len(w.values) > 0 && since < domain.MinMetricWindow:
		w.values[len(w.values)-1] = v
		return
	}
	w.values = slices.DeleteFunc(w.values, func(old value) bool { return v.at.Sub(old.at) > w.length })
	w.values, w.begun = append(w.values, v), v.at
}

// measurement aggregates the values of a time before the newest one.
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

// forget drops the windows of sources that nobody has asked for so long that all in them is too old.
func (m *Meter) forget(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.windows, func(_ string, w *window) bool { return now.Sub(w.asked) > w.length })
}
