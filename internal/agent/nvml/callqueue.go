package nvml

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// callQueue is a queue that lets one call of NVML through at a time. A hanging driver holds a thread for good: no call
// is made behind one that does not return, so there is never more than one such thread per queue.
type callQueue struct {
	current atomic.Pointer[call]
}

// call is a call of NVML in progress.
type call struct {
	function string
	limit    time.Duration
	deadline time.Time
	done     chan struct{}
	// settled is set by what comes first: its end, or that its caller gives up.
	settled atomic.Bool
}

// noAnswerError means that a function of NVML did not return.
type noAnswerError struct {
	function string
	limit    time.Duration
}

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("NVML did not answer within %s (%s)", e.limit, e.function)
}

// through makes a call when it is its turn, and returns its result, or a *[noAnswerError] if it takes longer than the
// limit; right away if the call before it has already taken longer.
func through[T any](
	ctx context.Context, l *callQueue, function string, limit time.Duration, f func() (T, error),
) (T, error) {
	return throughOr(ctx, l, function, limit, f, func(T) {})
}

// throughOr is through for a call whose result must not be lost: if it arrives after its caller gave up, it is undone
// before another call is made.
func throughOr[T any](
	ctx context.Context, l *callQueue, function string, limit time.Duration, f func() (T, error), undo func(T),
) (T, error) {
	var none, result T
	var err error
	mine := &call{function: function, limit: limit, done: make(chan struct{})}
	for {
		mine.deadline = time.Now().Add(limit)
		if l.current.CompareAndSwap(nil, mine) {
			break
		}
		if before := l.current.Load(); before != nil {
			if err := before.wait(ctx); err != nil {
				return none, err
			}
		}
	}
	go func() {
		result, err = f()
		if mine.settled.Swap(true) && err == nil {
			undo(result)
		}
		l.current.Store(nil)
		close(mine.done)
	}()
	if gone := mine.wait(ctx); gone != nil && !mine.settled.Swap(true) {
		return none, gone
	}
	<-mine.done
	return result, err
}

// wait returns when the call has returned, or with the reason why it is no longer waited for.
func (c *call) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	var gone error
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		gone = context.Cause(ctx)
	case <-timer.C:
		gone = &noAnswerError{c.function, c.limit}
	}
	select {
	case <-c.done: // both were ready
		return nil
	default:
		return gone
	}
}
