//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

// The bars follow from the figures in the table, of the time from the first task: the start takes 10 s more, and the
// policy's first submit waits for another 10 s.
func TestSparkTables(t *testing.T) {
	submit := func(training, before int) sparkSubmit {
		return sparkSubmit{
			training: time.Duration(training) * time.Second, whole: time.Duration(training+before) * time.Second,
		}
	}
	run := func(policy int) sparkTimes {
		times := sparkTimes{
			static: map[int]sparkSubmit{1: submit(40, 10), 2: submit(20, 10), 4: submit(15, 10)},
			policy: []sparkSubmit{submit(policy+3, 20), submit(policy-3, 10)},
		}
		times.best = times.fastest()
		return times
	}
	for policy, want := range map[int][]string{
		16: {
			"20.00 s (20.00 – 20.00)", "19.00 s (19.00 – 19.00)", "16.00 s (16.00 – 16.00)",
			"0.95 ×", "0.80 ×", "1.07 ×",
			"30.00 s (30.00 – 30.00)", "39.00 s (39.00 – 39.00)", "31.00 s (31.00 – 31.00)",
			"1.30 ×", "1.03 ×", "1.24 ×", "1056 s", "1.28 ×", "held",
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

// A job's times are the last ones that its driver printed.
func TestSparkTook(t *testing.T) {
	took, err := sparkTook([]byte(`[
  "26/11/26 INFO Master", "{\"event\": \"trained\", \"seconds\": 3}",
  "{\"event\": \"evaluated\", \"seconds\": 12.5, \"since_first_task\": 4.5}", "bye"
]`))
	want := sparkSubmit{training: 4500 * time.Millisecond, whole: 12500 * time.Millisecond}
	if err != nil || took != want {
		t.Errorf("it took %+v (%v), want %+v", took, err, want)
	}
	if took, err := sparkTook([]byte(`["{\"event\": \"trained\", \"seconds\": 3}"]`)); err == nil {
		t.Errorf("a driver that failed took %+v", took)
	}
}
