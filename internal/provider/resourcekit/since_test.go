package resourcekit

import (
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-01-31T11:00:00Z":      now.Add(-time.Hour),
		"2026-01-31T12:00:00+01:00": now.Add(-time.Hour),
		"15m":                       now.Add(-15 * time.Minute),
		"0s":                        now,
	} {
		if got, err := ParseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-15m", "2026-01-31", "12:00"} {
		if got, err := ParseSince(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
