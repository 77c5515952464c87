package acctest

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

const (
	// usualRest is the longest pause of Eventually between two checks, or longestRest if the checks are slow: it pauses
	// three times as long as a check takes, so that waiting tests leave the processors to working ones.
	usualRest, longestRest = 100 * time.Millisecond, time.Second
	restFactor             = 3
)

// Eventually polls for a condition that no event reports. It polls less and less often, since a check may be work for a
// Docker Engine.
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

// EventuallyNoError repeats what may fail for a while. If it fails to the end, so does the test, which logs the last
// error.
func EventuallyNoError(t testing.TB, what string, do func() error) {
	t.Helper()
	var last error
	defer func() {
		if last != nil {
			t.Logf("%s: %v", what, last)
		}
	}()
	Eventually(t, what, func() bool {
		last = do()
		return last == nil
	})
}

// AtLeast waits until count reaches want, and returns the last count. A running member's process may take a moment to
// appear, but surplus processes would be there as soon as the expected ones.
func AtLeast(t testing.TB, want int, what string, count func() int) (got int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d %s", want, what), func() bool {
		got = count()
		return got >= want
	})
	return got
}
