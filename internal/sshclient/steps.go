package sshclient

import (
	"context"
	"time"
)

// networkLimit is how long a machine may take to accept a TCP connection. That is up to its kernel, so load is no
// excuse.
const networkLimit = 15 * time.Second

// noAnswer is the error text for a step without an answer.
const noAnswer = "no answer within %s; check the address, the network and firewalls in between"

// steps applies a time limit to each of several steps.
type steps struct {
	limit time.Duration
	fail  context.CancelCauseFunc
	timer *time.Timer
}

// inSteps returns a context that ends with a timeout [Failure] if a step takes longer than the limit; 0 means 30 s. It
// begins the first step, which fails with [noAnswer]. The steps have to be ended.
func inSteps(ctx context.Context, limit time.Duration) (context.Context, *steps) {
	ctx, fail := context.WithCancelCause(ctx)
	s := &steps{limit: limitOr(limit), fail: fail}
	s.next(noAnswer)
	return ctx, s
}

// next begins a step. failure is the error text if that times out, with a verb for the limit.
func (s *steps) next(failure string) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(s.limit, func() { s.fail(Failed(ErrTimeout, failure, s.limit)) })
}

// end ends the steps and their context.
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
