package nvml

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// lane lets one call of NVML through at a time. A driver that hangs holds a thread for good: behind a call that does not come back no
// other is made, so that there is never more than one such thread a lane.
type lane struct {
	current atomic.Pointer[call]
}

// call is a call of NVML on its way.
type call struct {
	function string
	limit    time.Duration
	deadline time.Time
	done     chan struct{}
}

// noAnswerError means that a function of NVML did not come back.
type noAnswerError struct {
	function string
	limit    time.Duration
}

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("NVML did not answer within %s (%s)", e.limit, e.function)
}

// through makes a call when it is its turn, and returns what comes back, or a *[noAnswerError] where that takes longer than the limit;
// at once where it has taken longer for the call before.
func through[T any](ctx context.Context, l *lane, function string, limit time.Duration, f func() (T, error)) (T, error) {
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
		l.current.Store(nil)
		close(mine.done)
	}()
	if err := mine.wait(ctx); err != nil {
		return none, err
	}
	return result, err
}

// wait returns when the call has come back, or the reason why it is waited for no longer.
func (c *call) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	select {
	case <-c.done: // both were ready
		return nil
	default:
		return &noAnswerError{c.function, c.limit}
	}
}
