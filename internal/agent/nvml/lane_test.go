package nvml

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lane
		taking := func(d time.Duration) func() (int, error) {
			return func() (int, error) {
				time.Sleep(d) //nolint:forbidigo // time is the test's
				return int(d / time.Second), errors.ErrUnsupported
			}
		}
		call := func(d, limit time.Duration) (int, time.Duration, error) {
			start := time.Now()
			n, err := through(t.Context(), &l, "f", limit, taking(d))
			return n, time.Since(start), err
		}
		if n, took, err := call(time.Second, 2*time.Second); n != 1 || !errors.Is(err, errors.ErrUnsupported) || took != time.Second {
			t.Errorf("a call that comes back: %d, %v after %s", n, err, took)
		}

		// A call that is late holds up the next one until its own limit, and all after that for no time.
		var late *noAnswerError
		if _, took, err := call(10*time.Second, 2*time.Second); !errors.As(err, &late) || took != 2*time.Second {
			t.Errorf("a call that is late: %v after %s", err, took)
		}
		if _, took, err := call(time.Second, 5*time.Second); !errors.As(err, &late) || late.limit != 2*time.Second || took != 0 {
			t.Errorf("the call after it: %v after %s", err, took)
		}
		time.Sleep(8 * time.Second) //nolint:forbidigo // time is the test's
		synctest.Wait()
		if n, _, _ := call(3*time.Second, 5*time.Second); n != 3 {
			t.Error("it did not come back")
		}

		// Calls wait for their turn.
		var all sync.WaitGroup
		start := time.Now()
		for range 3 {
			all.Go(func() {
				if n, err := through(t.Context(), &l, "f", 2*time.Second, taking(time.Second)); n != 1 {
					t.Errorf("one of several calls: %d, %v", n, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("three calls of a second took %s", took)
		}

		// Nobody waits beyond the context, and the call that goes on is not late for that.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := through(ctx, &l, "f", 5*time.Second, taking(2*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beyond the context: %v", err)
		}
		if n, took, err := call(time.Second, 5*time.Second); n != 1 || took != 2*time.Second {
			t.Errorf("the call after that: %d, %v after %s", n, err, took)
		}
	})
}
