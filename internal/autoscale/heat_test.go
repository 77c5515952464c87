package autoscale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// published is the configuration that Stolin's autoscaler was published with: a decision every 5 s, a recurrence factor
// of 3, and workers whose utilisation is kept at 0.5, in a band from 0.2 to 0.6. There are 1 to 30 of them.
var published = domain.HeatAlgorithm{Lower: 0.2, Upper: 0.6, Target: 0.5, Recurrence: 3}

func TestHeat(t *testing.T) {
	type want struct {
		heat, count int
		abstains    bool
	}
	for name, test := range map[string]struct {
		algorithm domain.HeatAlgorithm
		before    int
		ready     int
		values    []float64
		want      []want
	}{
		"hot three times": {
			published, 0, 4, []float64{0.7, 0.7, 0.7}, []want{{1, 6, true}, {2, 6, true}, {0, 6, false}},
		},
		"cold three times": {
			published, 0, 6, []float64{0.1, 0.1, 0.1}, []want{{-1, 2, true}, {-2, 2, true}, {0, 2, false}},
		},
		"three is the default": {
			domain.HeatAlgorithm{Lower: 0.2, Upper: 0.6, Target: 0.5}, 2, 4, []float64{0.7}, []want{{0, 6, false}},
		},
		"at the thresholds": {published, 0, 5, []float64{0.6, 0.2}, []want{{1, 6, true}, {-1, 2, true}}},
		"in between cools": {
			published, 2, 4, []float64{0.4, 0.4, 0.4}, []want{{1, 4, true}, {0, 4, true}, {0, 4, true}},
		},
		"in between heats": {
			published, -2, 4, []float64{0.4, 0.4, 0.4}, []want{{-1, 4, true}, {0, 4, true}, {0, 4, true}},
		},
		"hot after it was cold": {published, -2, 4, []float64{0.9}, []want{{1, 8, true}}},
		"cold after it was hot": {published, 2, 4, []float64{0.1}, []want{{-1, 1, true}}},
		"a short peak scales nothing": {
			published, 0, 4, []float64{0.9, 0.9, 0.5, 0.9},
			[]want{{1, 8, true}, {2, 8, true}, {1, 4, true}, {2, 8, true}},
		},
		"a recurrence of 1": {
			domain.HeatAlgorithm{Lower: 5, Upper: 25, Target: 10, Recurrence: 1}, 0, 2, []float64{25, 4},
			[]want{{0, 5, false}, {0, 1, false}},
		},
		"it begins anew":              {published, 2, 4, []float64{0.7, 0.7}, []want{{0, 6, false}, {1, 6, true}}},
		"a policy with a smaller one": {published, 7, 4, []float64{0.7}, []want{{0, 6, false}}},
		// of 4 that were ordered
		"the count as it is":         {published, 2, 2, []float64{0.7}, []want{{0, 3, false}}},
		"nobody ready":               {published, 2, 0, []float64{0.7}, []want{{0, 0, false}}},
		"idle":                       {published, -2, 4, []float64{0}, []want{{0, 0, false}}},
		"an error of floating point": {published, 2, 20, []float64{0.65}, []want{{0, 26, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Memory{Heat: test.before}
			for i, value := range test.values {
				p := heat(test.algorithm, &m,
					asking{now: noon, count: 4, ready: test.ready, metric: Measurement{Value: value}})
				sane(t, p)
				if got := (want{m.Heat, p.count, p.abstains}); got != test.want[i] {
					t.Errorf("%v makes %+v, want %+v: %s", value, got, test.want[i], p.why)
				}
			}
		})
	}
}

// TestHeatPublished simulates a run with the published configuration. No cooldown stops the heat from being evaluated.
func TestHeatPublished(t *testing.T) {
	type change struct {
		Seconds, Workers int
		Why              string
	}
	want := []change{
		{10, 2, "heat 3 of 3: 0.9 is at least 0.6, and 1 × 0.9 / 0.5 makes 2"},
		{25, 4, "heat 3 of 3: 0.9 is at least 0.6, and 2 × 0.9 / 0.5 makes 4"},
		{40, 8, "heat 3 of 3: 0.9 is at least 0.6, and 4 × 0.9 / 0.5 makes 8"},
		{55, 15, "heat 3 of 3: 0.9 is at least 0.6, and 8 × 0.9 / 0.5 makes 15"},
		{70, 27, "heat 3 of 3: 0.9 is at least 0.6, and 15 × 0.9 / 0.5 makes 27"},
		{85, 30, "heat 3 of 3: 0.9 is at least 0.6, and 27 × 0.9 / 0.5 makes 49"},
		{130, 12, "heat -3 of 3: 0.2 is at most 0.2, and 30 × 0.2 / 0.5 makes 12"},
		{145, 5, "heat -3 of 3: 0.2 is at most 0.2, and 12 × 0.2 / 0.5 makes 5"},
		{160, 2, "heat -3 of 3: 0.2 is at most 0.2, and 5 × 0.2 / 0.5 makes 2"},
		{175, 1, "heat -3 of 3: 0.2 is at most 0.2, and 2 × 0.2 / 0.5 makes 1"},
	}
	var got []change
	var m Memory
	workers := 1
	for seconds := 0; seconds < 300; seconds += 5 {
		load := 0.9
		switch {
		case seconds >= 120:
			load = 0.2
		case seconds >= 90:
			load = 0.5
		}
		p := heat(published, &m, asking{
			now: noon.Add(time.Duration(seconds) * time.Second), count: workers, ready: workers,
			metric: Measurement{Value: load},
		})
		if p.abstains {
			continue
		}
		if next := min(max(p.count, 1), 30); next != workers {
			workers = next
			got = append(got, change{seconds, workers, p.why})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestHeatWhy(t *testing.T) {
	percent := domain.HeatAlgorithm{Lower: 20, Upper: 60, Target: 50}
	for name, test := range map[string]struct {
		heat  int
		value float64
		want  string
	}{
		"hot":        {1, 71, "heat 2 of 3: 71 is at least 60"},
		"cold":       {0, 12.3456, "heat -1 of 3: 12.35 is at most 20"},
		"in between": {2, 45, "heat 1 of 3: 45 is between 20 and 60"},
		"scaled":     {2, 71, "heat 3 of 3: 71 is at least 60, and 4 × 71 / 50 makes 6"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := heat(percent, &Memory{Heat: test.heat},
				asking{count: 4, ready: 4, metric: Measurement{Value: test.value}}).why; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
