//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestMultiworkerTable(t *testing.T) {
	end := func(seconds, joined, accuracy float64) workloadEnd {
		return workloadEnd{Seconds: seconds, Checksum: 1, Accuracy: accuracy, Joined: joined}
	}
	for checksums, want := range map[string][]string{
		"same": {
			"+10.0 %", "150 → 185 s, +23 %", "held", "+15.0 %", "250 → 318 s, +27 %", "MISSED",
			"the same weights everywhere: held", "of the 12 published ones", "Accuracy: 0.945 (0.940 – 0.960), ",
			"4.00 s (4.00 – 4.00) on bare hosts, 5.00 s (5.00 – 5.00) on the Swarm",
		},
		"other": {"the same weights everywhere: MISSED"},
	} {
		r := multiworkerResults{
			took: map[string]map[int]sample{"systemd": {}, "swarm": {}}, joined: map[string]sample{},
			checksums: map[int64]bool{},
		}
		r.record("systemd", 1, []workloadEnd{end(100, 4, 0.94)})
		r.record("swarm", 1, []workloadEnd{end(110, 5, 0.94)})
		r.record("systemd", 2, []workloadEnd{end(200, 9, 0.95), end(190, 9, 0.94)})
		r.record("swarm", 2, []workloadEnd{end(230, 9, 0.96), end(220, 9, 0.95)})
		if checksums == "other" {
			r.record("swarm", 2, []workloadEnd{{Checksum: 2}})
		}
		text := fmt.Sprint(r.tables())
		for _, phrase := range want {
			if !strings.Contains(text, phrase) {
				t.Errorf("%s checksums: the table has no %q:\n%s", checksums, phrase, text)
			}
		}
	}
}
