package prometheus

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// A real Prometheus returns ranges longer than it answers at once, each value at its time.
// Having no values is an error.
func TestRange(t *testing.T) {
	t.Parallel()
	settings := Settings{URL: acctest.StartPrometheus(t, exporters...), Timeout: patience.Limit}
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	last := start.Add((2*pointsAtOnce + 17) * time.Minute)
	for name, test := range map[string]struct {
		query string
		step  time.Duration
		end   time.Time
		want  func(at float64) float64
	}{
		"each at its moment": {"vector(time())", time.Minute, last, func(at float64) float64 { return at }},
		"parts of a second": {
			"vector(time())", 1500 * time.Millisecond, start.Add(time.Minute), func(at float64) float64 { return at },
		},
		"one moment": {
			"vector(time())", time.Minute, start.Add(59 * time.Second), func(at float64) float64 { return at },
		},
		"some are not there": {"vector(time() / 60 % 2) > 0", time.Minute, last, func(at float64) float64 {
			if int(at)/60%2 == 0 {
				return math.NaN()
			}
			return 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := Range{Query: test.query, Start: start, End: test.end, Step: test.step}
			values, err := settings.Range(t.Context(), asked)
			if err != nil || len(values) != asked.Points() {
				t.Fatalf("%d values of %d, %v", len(values), asked.Points(), err)
			}
			for i, value := range values {
				at := start.Add(time.Duration(i) * test.step)
				want := test.want(float64(at.UnixMilli()) / 1000)
				if value != want && !(math.IsNaN(value) && math.IsNaN(want)) {
					t.Fatalf("at %s it is %v, want %v", at, value, want)
				}
			}
		})
	}
	for query, says := range map[string]string{
		"node_load1 {":  "Prometheus rejected the query for the range, node_load1 {",
		"absent_metric": "the query absent_metric returns nothing from 2026-01-31T12:00:00Z",
		`label_replace(vector(1), "a", "1", "", "") or vector(1)`: "it returns 2 series, such as {} and {a=\"1\"}, instead of one: combine them with sum(…)",
	} {
		_, err := settings.Range(t.Context(),
			Range{Query: query, Start: start, End: start.Add(time.Hour), Step: time.Minute})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v, want %q", query, err, says)
		}
	}
}
