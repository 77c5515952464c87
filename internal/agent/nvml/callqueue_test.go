package nvml

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitForWhatHasCome: a caller that is late for the end of a call, as on a busy machine, still gets its result.
func TestWaitForWhatHasCome(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select chooses randomly among what is ready
		back := &call{function: "f", deadline: time.Now().Add(-time.Second), done: make(chan struct{})}
		close(back.done)
		if err := back.wait(gone); err != nil {
			t.Fatal(err)
		}
	}
}

func TestThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l callQueue
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
		if n, took, err := call(time.Second, 2*time.Second); n != 1 || !errors.Is(err, errors.ErrUnsupported) ||
			took != time.Second {
			t.Errorf("a call that comes back: %d, %v after %s", n, err, took)
		}

		// A late call delays the next one until its own limit, and all further ones not at all.
		var late *noAnswerError
		if _, took, err := call(10*time.Second, 2*time.Second); !errors.As(err, &late) || took != 2*time.Second {
			t.Errorf("a call that is late: %v after %s", err, took)
		}
		if _, took, err := call(time.Second, 5*time.Second); !errors.As(err, &late) || late.limit != 2*time.Second ||
			took != 0 {
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

		// No caller waits beyond its context, and the call that continues does not count as late because of that.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := through(ctx, &l, "f", 5*time.Second,
			taking(2*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beyond the context: %v", err)
		}
		if n, took, err := call(time.Second, 5*time.Second); n != 1 || took != 2*time.Second {
			t.Errorf("the call after that: %d, %v after %s", n, err, took)
		}
	})
}

// TestThroughOr: a result either reaches its caller, or is undone before the next call.
func TestThroughOr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l callQueue
		undone := 0
		call := func(d time.Duration, err error) (int, error) {
			return throughOr(t.Context(), &l, "f", 2*time.Second, func() (int, error) {
				time.Sleep(d) //nolint:forbidigo // time is the test's
				return 7, err
			}, func(n int) { undone += n })
		}
		if n, err := call(time.Second, nil); n != 7 || err != nil || undone != 0 {
			t.Errorf("in time: %d, %v; undone %d", n, err, undone)
		}
		for _, fails := range []error{nil, errors.ErrUnsupported} { // the second has no result
			if n, err := call(3*time.Second, fails); n != 0 || err == nil || errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("too late: %d, %v", n, err)
			}
			<-l.current.Load().done
			if undone != 7 {
				t.Errorf("too late: undone %d, want 7", undone)
			}
		}
	})
}
