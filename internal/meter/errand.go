package meter

import "context"

// lane bounds how much of one kind, or of one server, is done at once.
type lane chan struct{}

// lane returns the lane of a name, of a width.
func (r *reading) lane(name string, width int) lane {
	if r.lanes == nil {
		r.lanes = map[string]lane{}
	}
	if r.lanes[name] == nil {
		r.lanes[name] = make(lane, width)
	}
	return r.lanes[name]
}

// enter waits for its turn until ctx is done. Who has entered has to leave.
func (l lane) enter(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l lane) leave() { <-l }

// errand is something that is read once, whoever asks for it.
type errand[T any] struct {
	patience context.Context //nolint:containedctx // of the reading that it belongs to
	done     chan struct{}
	value    T
	err      error
}

// share returns the errand of a key, which is noted to be run where nobody has asked for it yet: within a lane, or at
// once where that is nil.
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

// wait returns what was read. What is not there in time is given up.
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
