package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Warning is a message to the user from a call that succeeded.
type Warning struct {
	Summary, Detail string
}

// Warnings collects those of the calls made with a context.
type Warnings struct {
	mu      sync.Mutex
	details map[string]string
}

type warningsKey struct{}

// WithWarnings returns a context that collects the warnings of its calls.
func WithWarnings(ctx context.Context) (context.Context, *Warnings) {
	w := &Warnings{details: map[string]string{}}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// Warn adds a warning to those of a context, in place of an earlier one with the same summary. An empty detail
// withdraws it. It does nothing if the context collects no warnings.
func Warn(ctx context.Context, w Warning) {
	to, asked := ctx.Value(warningsKey{}).(*Warnings)
	if !asked {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if w.Detail == "" {
		delete(to.details, w.Summary)
	} else {
		to.details[w.Summary] = w.Detail
	}
}

// All returns the current warnings, sorted by summary.
func (w *Warnings) All() []Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Warning, 0, len(w.details))
	for summary, detail := range w.details {
		all = append(all, Warning{summary, detail})
	}
	slices.SortFunc(all, func(a, b Warning) int { return strings.Compare(a.Summary, b.Summary) })
	return all
}
