//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

// The bars follow from the figures in the table.
func TestSparkTables(t *testing.T) {
	run := func(policy int) sparkTimes {
		times := sparkTimes{
			static: map[int]time.Duration{1: 40 * time.Second, 2: 20 * time.Second, 4: 15 * time.Second},
			policy: []time.Duration{time.Duration(policy+3) * time.Second, time.Duration(policy-3) * time.Second},
		}
		times.best = times.fastest()
		return times
	}
	for policy, want := range map[int][]string{
		16: {
			"20.00 s (20.00 – 20.00)", "19.00 s (19.00 – 19.00)", "16.00 s (16.00 – 16.00)", "0.80 ×", "1.07 ×",
			"1056 s", "1.28 ×", "held",
		},
		17: {"0.85 ×", "1.13 ×", "MISSED"},
	} {
		var text strings.Builder
		for _, section := range sparkTables([][]sparkTimes{{run(policy)}, {run(policy), run(policy)}}) {
			text.WriteString(section.String())
		}
		for _, part := range want {
			if !strings.Contains(text.String(), part) {
				t.Errorf("of a policy that takes %d s, the tables don't say %q:\n%s", policy, part, text.String())
			}
		}
	}
}

// A job's time is the last one that its driver printed.
func TestSparkTook(t *testing.T) {
	took, err := sparkTook([]byte(`[
  "26/11/26 INFO Master", "{\"event\": \"trained\", \"seconds\": 3}", "{\"event\": \"evaluated\", \"seconds\": 12.5}", "bye"
]`))
	if err != nil || took != 12500*time.Millisecond {
		t.Errorf("it took %s (%v), want 12.5 s", took, err)
	}
	if took, err := sparkTook([]byte(`["{\"event\": \"trained\", \"seconds\": 3}"]`)); err == nil {
		t.Errorf("a driver that failed took %s", took)
	}
}
