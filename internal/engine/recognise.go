package engine

import (
	"context"
	"fmt"
)

// Recogniser is implemented by engines that something else than the cluster leads to its hosts, such as an endpoint: it may lead
// to the wrong ones.
type Recogniser interface {
	// Recognise returns an [*ElsewhereError] where the engine is led to other hosts than those of the cluster with an ID, as in the
	// cluster's specification. Where the cluster's document is there, that takes no more than to read it.
	Recognise(ctx context.Context, id string) error
}

// ElsewhereError is returned where an engine is led to something else than what it was led to before. What is not found there may
// well be where it was.
type ElsewhereError struct {
	// Where is what was found, and Expected is what was to be, in words.
	Where, Expected string
}

// Error names both.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("this is %s, not %s", e.Where, e.Expected)
}

// Recognise returns an [*ElsewhereError] where an engine is not led to the cluster with an ID; "" is any. See [Recogniser].
func Recognise(ctx context.Context, e Engine, id string) error {
	r, ok := e.(Recogniser)
	if !ok || id == "" {
		return nil
	}
	return r.Recognise(ctx, id)
}
