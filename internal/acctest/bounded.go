package acctest

import (
	"context"
	"testing"
	"time"
)

// stepLimit is far more than anything that a test does takes.
const stepLimit = 3 * time.Minute

// Bounded returns a context for one thing that a test does, or does at its end: where it hangs, the error says what it waited for.
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stepLimit)
	t.Cleanup(cancel)
	return ctx
}
