package acctest

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// Eventually waits for what no event tells of.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(patience.Limit)
	for !holds() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
