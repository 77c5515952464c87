package dockerapi

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// parallel bounds the requests that are under way at a time.
const parallel = 16

// InParallel does something with each of the items. The first error ends what has not begun.
func InParallel[T any](ctx context.Context, items []T, do func(ctx context.Context, item T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
