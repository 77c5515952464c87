package nvml

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// lane lets one call of NVML through at a time. A driver that hangs holds a thread for good: behind a call that does
// not come back no other is made, so that there is never more than one such thread a lane.
type lane struct {
	current atomic.Pointer[call]
}

// call is a call of NVML on its way.
type call struct {
	function string
	limit    time.Duration
	deadline time.Time
	done     chan struct{}
	// settled is set by what comes first: its end, or that who has made it gives it up.
	settled atomic.Bool
}

// noAnswerError means that a function of NVML did not come back.
type noAnswerError struct {
	function string
	limit    time.Duration
}

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("NVML did not answer within %s (%s)", e.limit, e.function)
}

// through makes a call when it is its turn, and returns what comes back, or a *[noAnswerError] where that takes longer
// than the limit; at once where it has taken longer for the call before.
func through[T any](ctx context.Context, l *lane, function string, limit time.Duration, f func() (T, error)) (T, error) {
	return throughOr(ctx, l, function, limit, f, func(T) {})
}

// throughOr is through for a call whose result must not be lost: where it comes when nobody waits for it any longer,
// it is undone before another call is made.
func throughOr[T any](
	ctx context.Context, l *lane, function string, limit time.Duration, f func() (T, error), undo func(T),
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

// wait returns when the call has come back, or the reason why it is waited for no longer.
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
