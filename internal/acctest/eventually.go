package acctest

import (
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
