package meter

import "context"

// lane is a queue: it bounds how many requests of one kind, or to one server, run at once.
type lane chan struct{}

// lane returns the queue with this name, creating it with this width.
func (r *reading) lane(name string, width int) lane {
	if r.lanes == nil {
		r.lanes = map[string]lane{}
	}
	if r.lanes[name] == nil {
		r.lanes[name] = make(lane, width)
	}
	return r.lanes[name]
}

// enter waits for a slot until ctx is done. A caller that got one has to call leave.
func (l lane) enter(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l lane) leave() { <-l }

// errand is a request that is made once, no matter how many questions need it.
type errand[T any] struct {
	patience context.Context //nolint:containedctx // of the reading that it belongs to
	done     chan struct{}
	value    T
	err      error
}

// share returns the request with a key, creating it if no question has asked for it yet. It runs within a queue,
// or at once if in is nil.
func share[T any](r *reading, key any, in lane, read func(context.Context) (T, error)) *errand[T] {
	if known, ok := r.shared[key].(*errand[T]); ok {
		return known
	}
	if r.shared == nil {
		r.shared = map[any]any{}
	}
	e := &errand[T]{patience: r.patience, done: make(chan struct{})}
	r.shared[key] = e
	r.errands = append(r.errands, func(ctx context.Context) {
		defer close(e.done)
		if in != nil {
			if e.err = in.enter(ctx); e.err != nil {
				return
			}
			defer in.leave()
		}
		e.value, e.err = read(ctx)
	})
	return e
}

// wait returns the result, or an error if it is late.
func (e *errand[T]) wait() (T, error) {
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
