package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Warning is what a call has to say to a user though it did what it was asked for.
type Warning struct {
	Summary, Detail string
}

// Warnings are those of the calls made with a context.
type Warnings struct {
	mu      sync.Mutex
	details map[string]string
}

type warningsKey struct{}

// WithWarnings returns a context whose calls leave their warnings.
func WithWarnings(ctx context.Context) (context.Context, *Warnings) {
	w := &Warnings{details: map[string]string{}}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// Warn leaves a warning with those of a context, in the place of an earlier one of the same summary. An empty detail
// takes that back. Where nobody asks for warnings it does nothing.
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

// All returns the warnings that stand, by their summaries.
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
