package meter

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Values of a source are kept for the requested window and no longer. An unreadable value is missing,
// whatever was there before.
func TestWindows(t *testing.T) {
	var length atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if length.Load() < 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, length.Load())
	}))
	defer server.Close()
	m := patient(&fake{})
	source := domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: server.URL}}}
	minute := domain.Duration(time.Minute)
	questions := []Question{
		{Source: source},
		{Source: source, Window: &minute},
		{Source: source, Window: &minute, Aggregation: domain.AggregateMax},
		{Source: source, Window: &minute, Aggregation: domain.AggregateP95},
		{Source: source, Window: &minute, Aggregation: domain.AggregateLast},
		{Source: source, Window: new(minute / 4), Aggregation: domain.AggregateMean},
	}
	for _, step := range []struct {
		after  time.Duration
		length int64
		want   string // the measurements, in the order of the questions
	}{
		{0, 10, "[10 10 10 10 10 10]"},
		{20 * time.Second, 40, "[40 25 40 40 40 40]"},
		{30 * time.Second, 10, "[10 20 40 40 10 25]"},
		{30*time.Second + 500*time.Millisecond, 100, "[100 50 100 100 100 70]"}, // replaces the previous one
		{40 * time.Second, -1, "[? ? ? ? ? ?]"},
		{80 * time.Second, 8, "[8 49.333333333333336 100 100 8 8]"},
		{time.Hour, 0, "[0 0 0 0 0 0]"},
		{time.Hour + 10*time.Second, 6, "[6 3 6 6 6 3]"},
		{time.Minute, 4, "[4 4 4 4 4 4]"}, // the clock was set back
		{time.Minute + 2*time.Second, 0, "[0 2 4 4 0 2]"},
	} {
		length.Store(step.length)
		now := noon.Add(step.after)
		var got []string
		for _, measured := range m.Read(acctest.Bounded(t), now, Observation{}, questions) {
			if measured.Why != "" {
				missed(t, measured, "HTTP 503 Service Unavailable")
				got = append(got, "?")
				continue
			}
			if !measured.At.Equal(now) {
				t.Errorf("after %s, the value is of %s", step.after, measured.At)
			}
			got = append(got, fmt.Sprint(measured.Value))
		}
		if fmt.Sprint(got) != step.want {
			t.Errorf("after %s they are %s, want %s", step.after, got, step.want)
		}
	}
}

// Stored values are bounded, however often a source is read, and go with the policies that ask for them.
func TestWindowsAreBounded(t *testing.T) {
	m, now := patient(&fake{}), noon
	q := Question{
		Source: domain.ScalingSource{Queue: &domain.QueueSource{Command: []string{"a"}}},
		Window: new(domain.Duration(5 * time.Minute)),
	}
	for range 10_000 {
		now = now.Add(70 * time.Millisecond)
		m.remember(q, value{1, now}, now)
	}
	for _, w := range m.windows {
		if got := len(w.values); got < 250 || got > 301 {
			t.Errorf("%d values are remembered of five minutes", got)
		}
	}
	m.Read(acctest.Bounded(t), now.Add(4*time.Minute), Observation{}, nil)
	if len(m.windows) != 1 {
		t.Error("a window is forgotten within its time")
	}
	m.Read(acctest.Bounded(t), now.Add(6*time.Minute), Observation{}, nil)
	if len(m.windows) != 0 {
		t.Error("a window is remembered that nobody asks for")
	}
}

// FuzzRestore: a meter continues with any stored window. It uses the valid values, and keeps no more than the window.
func FuzzRestore(f *testing.F) {
	for _, stored := range []string{
		"{}", `{"length":"-1m","values":[{"at":"2026-11-22T12:00:00Z","value":-1}]}`,
		`{"length":"1m","values":[{"at":"9999-12-31T23:59:59Z","value":1e308},{"at":"0001-01-01T00:00:00Z"}]}`,
		`{"length":"1m","values":[{"at":"2026-11-22T11:59:30Z","value":1},{"at":"2026-11-22T12:00:00.5Z","value":2}]}`,
		`{"length":"2562047h","values":[{},{},{}]}`,
	} {
		f.Add([]byte(stored), 1.0)
	}
	minute := domain.Duration(time.Minute)
	f.Fuzz(func(t *testing.T, stored []byte, measured float64) {
		var former Window
		if json.Unmarshal(stored, &former) != nil || math.IsNaN(measured) || math.IsInf(measured, 0) {
			t.Skip("it is not read, or not measured")
		}
		q := Question{
			Source: domain.ScalingSource{Queue: &domain.QueueSource{Command: []string{"a"}}}, Window: &minute,
			Aggregation: domain.AggregateMax,
		}
		key, err := windowKey(q)
		if err != nil {
			t.Fatal(err)
		}
		m := patient(&fake{})
		m.Restore(map[string]Window{key: former}, noon)
		for i := range 3 {
			now := noon.Add(time.Duration(i) * 10 * time.Second)
			got := m.remember(q, value{measured, now}, now)
			if got.Why != "" || got.At.After(now.Add(domain.MinMetricWindow)) ||
				got.Value < measured && got.At.Equal(now) {
				t.Errorf("%v is measured at %s as %+v", measured, now, got)
			}
		}
		if _, err := json.Marshal(m.Windows([]Question{q})); err != nil {
			t.Errorf("what it remembers can't be stored: %v", err)
		}
	})
}
