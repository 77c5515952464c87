package engine

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Specifier is implemented by engines that can tell what members are specified to be without finding out what became of them, which takes
// longer.
type Specifier interface {
	// Specified returns the members as Observe does, less what comes of running: their states, for one.
	Specified(ctx context.Context, group string) ([]domain.Observed, error)
}

// Specified returns the members of a group as they are specified, at least. See [Specifier].
func Specified(ctx context.Context, e Engine, group string) ([]domain.Observed, error) {
	if s, ok := e.(Specifier); ok {
		return s.Specified(ctx, group)
	}
	return e.Observe(ctx, group)
}
