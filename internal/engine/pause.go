package engine

import (
	"context"
	"fmt"
)

// Pauser is implemented by engines that can pause members: they keep what they have, memory and GPUs included, and do
// nothing.
type Pauser interface {
	// Pause pauses running members, and Continue resumes them. Missing members, and those already in the requested
	// state, are left alone.
	Pause(ctx context.Context, names []string) error
	Continue(ctx context.Context, names []string) error
}

// Pause pauses members of an engine that supports it, see [Pauser].
func Pause(ctx context.Context, e Engine, names []string) error {
	pauser, ok := e.(Pauser)
	if !ok {
		return fmt.Errorf("the engine %q can't pause members", e.Traits().Name)
	}
	return pauser.Pause(ctx, names)
}

// Continue resumes paused members of an engine.
func Continue(ctx context.Context, e Engine, names []string) error {
	pauser, ok := e.(Pauser)
	if !ok {
		return nil // it pauses none
	}
	return pauser.Continue(ctx, names)
}
