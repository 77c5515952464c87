package resourcekit

import (
	"fmt"
	"time"
)

// ParseSince parses a time in RFC 3339, or a duration back from now.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf(
		"%q is neither a time in RFC 3339, such as \"2026-01-31T12:00:00Z\", nor a duration back from now, "+
			"such as \"15m\"",
		text,
	)
}
