package engine

import (
	"context"
	"fmt"
)

// Forgetter is implemented by engines that clean hosts which leave a cluster, and so have to be told of one that is
// gone.
type Forgetter interface {
	// Forget has a host that can't be reached leave the cluster without being cleaned, when it is taken out of that.
	Forget(ctx context.Context, host string) error
}

// Forget has a host that is gone for good be forgotten, see [Forgetter].
func Forget(ctx context.Context, e Engine, host string) error {
	forgetter, ok := e.(Forgetter)
	if !ok {
		return fmt.Errorf("the engine %q takes a host that can't be reached out of a cluster when that is applied without it",
			e.Traits().Name)
	}
	return forgetter.Forget(ctx, host)
}
