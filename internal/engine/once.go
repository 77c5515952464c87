package engine

import (
	"context"
	"sync"
)

// Once returns a function that reads once and shares the result with concurrent callers. A failed read is repeated by
// the next call.
func Once[T any](read func(ctx context.Context) (T, error)) func(ctx context.Context) (T, error) {
	type reading struct {
		done  chan struct{}
		found T
		err   error
	}
	var mu sync.Mutex
	var last *reading
	return func(ctx context.Context) (T, error) {
		mu.Lock()
		if r := last; r != nil {
			mu.Unlock()
			select {
			case <-r.done:
				return r.found, r.err
			case <-ctx.Done():
				return *new(T), ctx.Err()
			}
		}
		r := &reading{done: make(chan struct{})}
		last = r
		mu.Unlock()
		r.found, r.err = read(ctx)
		if r.err != nil {
			mu.Lock()
			last = nil
			mu.Unlock()
		}
		close(r.done)
		return r.found, r.err
	}
}
