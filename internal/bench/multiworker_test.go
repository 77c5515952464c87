//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMultiworkerTable(t *testing.T) {
	took := map[string]map[int]sample{
		"systemd": {1: {100 * time.Second}, 2: {200 * time.Second}},
		"swarm":   {1: {110 * time.Second}, 2: {230 * time.Second}},
	}
	joined := map[string]sample{"systemd": {4 * time.Second}, "swarm": {5 * time.Second}}
	for checksums, want := range map[string][]string{
		"same": {
			"+10.0 %", "+23 %", "held", "+15.0 %", "+27 %", "MISSED", "the same weights everywhere: held",
			"of the 12 published ones", "4.00 s (4.00 – 4.00) on bare hosts, 5.00 s (5.00 – 5.00) on the Swarm",
		},
		"other": {"the same weights everywhere: MISSED"},
	} {
		of := map[int64]bool{1: true}
		if checksums == "other" {
			of[2] = true
		}
		text := fmt.Sprint(multiworkerTable(took, joined, of))
		for _, phrase := range want {
			if !strings.Contains(text, phrase) {
				t.Errorf("%s checksums: the table has no %q:\n%s", checksums, phrase, text)
			}
		}
	}
}
