package sshclient

import (
	"context"
	"time"
)

// networkLimit is how long a machine may take to accept a TCP connection, which its kernel does: load is no excuse.
const networkLimit = 15 * time.Second

// noAnswer is what a step says that nothing came of.
const noAnswer = "no answer within %s; check the address, the network and firewalls in between"

// steps bounds each of some steps.
type steps struct {
	limit time.Duration
	fail  context.CancelCauseFunc
	timer *time.Timer
}

// inSteps returns a context that ends with a failure of its own where a step takes longer than a limit, 30 s where that
// is
// 0. The first one begins, and says [noAnswer]. They have to end.
func inSteps(ctx context.Context, limit time.Duration) (context.Context, *steps) {
	ctx, fail := context.WithCancelCause(ctx)
	s := &steps{limit: limitOr(limit), fail: fail}
	s.next(noAnswer)
	return ctx, s
}

// next begins a step. Of a failure, it says this, with the limit.
func (s *steps) next(failure string) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(s.limit, func() { s.fail(Failed(ErrTimeout, failure, s.limit)) })
}

// end ends the context, too.
func (s *steps) end() {
	s.timer.Stop()
	s.fail(nil)
}

func limitOr(limit time.Duration) time.Duration {
	if limit <= 0 {
		return UsualLimit
	}
	return limit
}
