package acctest

import (
	"context"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// Bounded returns a context for a single step of a test or its cleanup, so that a step that hangs fails with an error
// that says what it waited for.
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience.Limit)
	t.Cleanup(cancel)
	return ctx
}
