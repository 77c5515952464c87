package engine

import (
	"context"
	"fmt"
)

// Forgetter is implemented by engines that clean up hosts which leave a cluster, and so have to be told if one is gone.
type Forgetter interface {
	// Forget makes the cluster take out an unreachable host without cleaning it up, once it is removed from the
	// configuration.
	Forget(ctx context.Context, host string) error
}

// Forget makes an engine forget a host that is gone for good, see [Forgetter].
func Forget(ctx context.Context, e Engine, host string) error {
	forgetter, ok := e.(Forgetter)
	if !ok {
		return fmt.Errorf("the engine %q does not support forget: to remove an unreachable host from a cluster, "+
			"apply the cluster without it",
			e.Traits().Name)
	}
	return forgetter.Forget(ctx, host)
}
