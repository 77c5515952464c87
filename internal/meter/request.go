package meter

import "context"

// semaphore is a queue: it bounds how many requests of one kind, or to one server, run at once.
type semaphore chan struct{}

// semaphore returns the queue with this name, creating it with this width.
func (r *reading) semaphore(name string, width int) semaphore {
	if r.semaphores == nil {
		r.semaphores = map[string]semaphore{}
	}
	if r.semaphores[name] == nil {
		r.semaphores[name] = make(semaphore, width)
	}
	return r.semaphores[name]
}

// acquire waits for a slot until ctx is done. A caller that got one has to call release.
func (l semaphore) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l semaphore) release() { <-l }

// sharedRequest is a request that is made once, no matter how many questions need it.
type sharedRequest[T any] struct {
	patience context.Context //nolint:containedctx // of the reading that it belongs to
	done     chan struct{}
	value    T
	err      error
}

// share returns the request with a key, creating it if no question has asked for it yet. It runs within a queue,
// or at once if in is nil.
func share[T any](r *reading, key any, in semaphore, read func(context.Context) (T, error)) *sharedRequest[T] {
	if known, ok := r.shared[key].(*sharedRequest[T]); ok {
		return known
	}
	if r.shared == nil {
		r.shared = map[any]any{}
	}
	e := &sharedRequest[T]{patience: r.patience, done: make(chan struct{})}
	r.shared[key] = e
	r.requests = append(r.requests, func(ctx context.Context) {
		defer close(e.done)
		if in != nil {
			if e.err = in.acquire(ctx); e.err != nil {
				return
			}
			defer in.release()
		}
		e.value, e.err = read(ctx)
	})
	return e
}

// wait returns the result, or an error if it is late.
func (e *sharedRequest[T]) wait() (T, error) {
	select {
	case <-e.done:
		return e.value, e.err
	case <-e.patience.Done():
	}
	select {
	case <-e.done:
		return e.value, e.err
	default:
		var none T
		return none, context.Cause(e.patience)
	}
}
