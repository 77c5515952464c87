package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFailureIsRemembered: calls after a failure to connect get it at once, for a while that depends on how long it
// took, within bounds.
func TestFailureIsRemembered(t *testing.T) {
	for took, memory := range map[time.Duration]time.Duration{
		0: time.Second, 5 * time.Second: 10 * time.Second, 2 * time.Minute: 30 * time.Second,
	} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int32
				broken := errors.New("broken")
				client := NewClient("gpu1", func(context.Context) (net.Conn, error) {
					dials.Add(1)
					<-time.After(took)
					return nil, broken
				})
				expect := func(want int32) {
					t.Helper()
					if _, err := client.connect(t.Context()); !errors.Is(err, broken) || dials.Load() != want {
						t.Errorf("after %d attempts, want %d: %v", dials.Load(), want, err)
					}
				}
				expect(1)
				<-time.After(memory - 1)
				expect(1)
				<-time.After(1)
				expect(2)
				<-time.After(took) // for the last attempt, which not all await
			})
		})
	}
}

// TestRetriesAreAwaitedBriefly: after a failure, calls wait for the next attempt only at its beginning, and then get
// the failure; the attempt goes on, and its connection is used.
func TestRetriesAreAwaitedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 2 * time.Minute
		var dials atomic.Int32
		hung := errors.New("hung")
		client := NewClient("gpu1", func(context.Context) (net.Conn, error) {
			dial := dials.Add(1)
			<-time.After(long)
			if dial == 1 {
				return nil, hung
			}
			ours, theirs := net.Pipe()
			go func() { _ = Serve(t.Context(), theirs, http.NewServeMux()) }()
			return ours, nil
		})
		defer client.Close()
		expect := func(wantErr error, wantWait time.Duration) {
			t.Helper()
			began := time.Now()
			_, err := client.connect(t.Context())
			if wait := time.Since(began); !errors.Is(err, wantErr) || wait != wantWait {
				t.Errorf("after %s: %v, want %v after %s", wait, err, wantErr, wantWait)
			}
		}
		expect(hung, long)
		<-time.After(mostMemory)
		expect(hung, retryPatience)
		expect(hung, 0)
		<-time.After(long - retryPatience - time.Second)
		expect(hung, 0)
		<-time.After(time.Second)
		synctest.Wait()
		expect(nil, 0)
		if dials.Load() != 2 {
			t.Errorf("it took %d attempts, want 2", dials.Load())
		}
	})
}

// TestRetriesAfterAbsence: that nothing of the cluster is on a host has consequences, so calls wait until it is known
// anew.
func TestRetriesAfterAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 2 * time.Minute
		var dials atomic.Int32
		hung := errors.New("hung")
		client := NewClient("gpu1", func(context.Context) (net.Conn, error) {
			if dials.Add(1) == 1 {
				return nil, ErrOutside
			}
			<-time.After(long)
			return nil, hung
		})
		for _, want := range []error{ErrOutside, hung} {
			if _, err := client.connect(t.Context()); !errors.Is(err, want) {
				t.Errorf("after %d attempts: %v, want %v", dials.Load(), err, want)
			}
			<-time.After(leastMemory)
		}
	})
}

// TestForget: the next call awaits an attempt of its own, as the first one did, even if another is under way.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = time.Minute
		var dials atomic.Int32
		absent, hung := errors.New("absent"), errors.New("hung")
		client := NewClient("gpu1", func(context.Context) (net.Conn, error) {
			dial := dials.Add(1)
			<-time.After(long)
			if dial < 3 {
				return nil, absent
			}
			return nil, hung
		})
		if _, err := client.connect(t.Context()); !errors.Is(err, absent) {
			t.Errorf("at first: %v", err)
		}
		<-time.After(mostMemory)
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.connect(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second attempt: %v", err)
		}
		client.Forget()
		began := time.Now()
		if _, err := client.connect(t.Context()); !errors.Is(err, hung) || time.Since(began) != long {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
