package acctest

import (
	"testing"
	"time"
)

// Eventually waits for what no event tells of, for a minute at most.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
