package engine

import (
	"context"
	"fmt"
)

// Pauser is implemented by engines that can halt members: they keep what they have, memory and GPUs included, and do
// nothing.
type Pauser interface {
	// Pause halts members that run, and Continue has them go on. Those that are not there, or are as asked for already,
	// are left alone.
	Pause(ctx context.Context, names []string) error
	Continue(ctx context.Context, names []string) error
}

// Pause halts members of an engine that can, see [Pauser].
func Pause(ctx context.Context, e Engine, names []string) error {
	pauser, ok := e.(Pauser)
	if !ok {
		return fmt.Errorf("the engine %q can't pause members", e.Traits().Name)
	}
	return pauser.Pause(ctx, names)
}

// Continue has halted members of an engine go on.
func Continue(ctx context.Context, e Engine, names []string) error {
	pauser, ok := e.(Pauser)
	if !ok {
		return nil // it halts none
	}
	return pauser.Continue(ctx, names)
}
