package dockerapi

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// parallel bounds the number of concurrent requests.
const parallel = 16

// InParallel calls do for each item. After the first error, no further ones are started.
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
