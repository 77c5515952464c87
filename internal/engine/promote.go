package engine

import (
	"context"
	"fmt"
)

// Promoter is implemented by engines that keep the store of a cluster on one of its hosts.
type Promoter interface {
	// Promote makes the host at the engine's endpoint the replacement of one that is down, and returns the names of
	// both; the same ones if an earlier call has already done so.
	Promote(ctx context.Context) (from, to string, err error)
}

// Promote makes another host keep the store of a cluster, see [Promoter].
func Promote(ctx context.Context, e Engine) (from, to string, err error) {
	promoter, ok := e.(Promoter)
	if !ok {
		return "", "", fmt.Errorf("the engine %q has no store host that another host could replace", e.Traits().Name)
	}
	return promoter.Promote(ctx)
}
