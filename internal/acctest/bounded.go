package acctest

import (
	"context"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// Bounded returns a context for one thing that a test does, or does at its end: where it hangs, the error says what it
// waited for.
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience.Limit)
	t.Cleanup(cancel)
	return ctx
}
