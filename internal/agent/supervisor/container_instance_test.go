//go:build linux

package supervisor

import (
	"testing"
	"time"
)

// TestEndedBetween: systemd notes the stop of an Engine after its signal, and a container may have ended by then.
func TestEndedBetween(t *testing.T) {
	stopped := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	back := stopped.Add(3 * time.Second)
	for after, want := range map[time.Duration]bool{
		-time.Second: false, -140 * time.Millisecond: true, 0: true, time.Second: true, 3 * time.Second: true,
		3001 * time.Millisecond: false,
	} {
		if got := endedBetween(stopped.Add(after), stopped, back); got != want {
			t.Errorf("a container that ended %s after the stop of its Engine ended with it: %t", after, got)
		}
	}
}
