package domain

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeasureOf(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 … 1
	}
	measure := func(last, mean, most, p95 float64) Measure {
		return Measure{Last: &last, Mean: &mean, Max: &most, P95: &p95}
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		values []float64
		want   Measure
	}{
		"nothing":                 {nil, Measure{}},
		"nothing known":           {[]float64{nan, nan}, Measure{}},
		"one":                     {[]float64{3}, measure(3, 3, 3, 3)},
		"zero is known":           {[]float64{0, 0}, measure(0, 0, 0, 0)},
		"a hundred, falling":      {hundred, measure(1, 50.5, 100, 95)},
		"gaps":                    {[]float64{nan, 1, nan, 3}, measure(3, 2, 3, 3)},
		"not known any more":      {[]float64{1, 3, nan}, Measure{Mean: new(2.0), Max: new(3.0), P95: new(3.0)}},
		"twenty: one is above":    {append(make([]float64, 19), 8), measure(8, 0.4, 8, 0)},
		"nineteen: none is above": {append(make([]float64, 18), 8), measure(8, 8./19, 8, 8)},
	} {
		if diff := cmp.Diff(c.want, MeasureOf(c.values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
