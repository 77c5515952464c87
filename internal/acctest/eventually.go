package acctest

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

const (
	// usualRest is how long Eventually rests between two looks in the end, and longestRest where looks take long: it
	// rests three times as long as it looks, or tests that wait would keep those that work from their processors.
	usualRest, longestRest = 100 * time.Millisecond, time.Second
	restFactor             = 3
)

// Eventually waits for what no event tells of. It looks less and less often: a look may be work for an Engine.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience.Limit)
	for rest := 5 * time.Millisecond; ; rest = min(rest*3/2, usualRest) {
		begun := time.Now()
		if holds() {
			return
		}
		select {
		case <-time.After(max(rest, min(restFactor*time.Since(begun), longestRest))):
		case <-deadline:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// AtLeast waits until there are so many of something, and returns how many there are then. A member runs from the start
// of what runs its command, which may take a moment to appear; more than there should be are there at once.
func AtLeast(t testing.TB, want int, what string, count func() int) (got int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d %s", want, what), func() bool {
		got = count()
		return got >= want
	})
	return got
}
