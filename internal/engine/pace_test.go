package engine_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestPace(t *testing.T) {
	pace := engine.Pace{Factor: 3, Longest: 20 * time.Millisecond}
	for took, want := range map[time.Duration]time.Duration{
		0: 0, 5 * time.Millisecond: 15 * time.Millisecond, 10 * time.Millisecond: 20 * time.Millisecond,
		time.Hour:     20 * time.Millisecond,
		math.MaxInt64: 20 * time.Millisecond,
	} {
		if rest := pace.After(took); rest != want {
			t.Errorf("after %s the rest is %s, want %s", took, rest, want)
		}
	}
}

// TestRestEnds: a pause is bounded, however long the poll took, and ends with its context.
func TestRestEnds(t *testing.T) {
	engine.WaitPace.Rest(t.Context(), time.Time{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	engine.Pace{Factor: 1, Longest: time.Hour}.Rest(ended, time.Time{})
}
