package acctest

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// Eventually waits for what no event tells of. It looks less and less often: a look may be work for an Engine.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience.Limit)
	for rest := 5 * time.Millisecond; !holds(); rest = min(rest*3/2, 100*time.Millisecond) {
		select {
		case <-time.After(rest):
		case <-deadline:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// AtLeast waits until there are so many of something, and returns how many there are then. A member runs from the start of what runs its
// command, which may take a moment to appear; more than there should be are there at once.
func AtLeast(t testing.TB, want int, what string, count func() int) (got int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d %s", want, what), func() bool {
		got = count()
		return got >= want
	})
	return got
}
