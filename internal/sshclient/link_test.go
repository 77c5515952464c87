package sshclient

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// silentConn answers some requests, and no more after that.
type silentConn struct {
	answers int
	asked   int
	closed  chan struct{}
}

func (c *silentConn) SendRequest(string, bool, []byte) (bool, []byte, error) {
	c.asked++
	if c.asked > c.answers {
		<-c.closed
		return false, nil, io.EOF
	}
	return false, nil, nil
}

func (c *silentConn) Close() error {
	close(c.closed)
	return nil
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &silentConn{answers: 4, closed: make(chan struct{})}
		start := time.Now()
		keepAlive(t.Context(), conn)
		<-conn.closed
		if took, want := time.Since(start), 5*keepAliveInterval+keepAlivePatience; conn.asked != 5 || took != want {
			t.Errorf("asked %d times, and closed after %s, want 5 times and %s", conn.asked, took, want)
		}
	})
}

func TestKeepAliveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := &silentConn{closed: make(chan struct{})}
		var watch sync.WaitGroup
		watch.Go(func() { keepAlive(ctx, conn) })
		cancel()
		watch.Wait()
		if conn.asked != 0 {
			t.Error("asked after the end")
		}
	})
}

// TestLogins: the number of concurrent logins is bounded, and the time limit of the others starts with their turn.
func TestLogins(t *testing.T) {
	const clients = 3 * 8
	noHost := errors.New("no host")
	entered, proceed := make(chan struct{}), make(chan struct{})
	var under, most atomic.Int32
	var all sync.WaitGroup
	for range clients {
		client := &Client{limit: 1, connect: func(context.Context, *steps) (*ssh.Client, error) {
			for now, seen := under.Add(1), most.Load(); now > seen &&
				!most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			entered <- struct{}{}
			<-proceed
			under.Add(-1)
			return nil, noHost
		}}
		all.Go(func() {
			if _, err := client.Hold(t.Context()); !errors.Is(err, noHost) {
				t.Errorf("the wait for others counts: %v", err)
			}
		})
	}
	for range cap(logins) {
		<-entered
	}
	for range clients - cap(logins) {
		proceed <- struct{}{}
		<-entered
	}
	close(proceed)
	all.Wait()
	if most.Load() != 8 {
		t.Errorf("%d logged in at once, want 8", most.Load())
	}
}

// TestGivenUpInLine: a caller that gives up while waiting for other logins leaves no trace.
func TestGivenUpInLine(t *testing.T) {
	for range cap(logins) {
		logins <- struct{}{}
	}
	given := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	client := &Client{
		connect: func(context.Context, *steps) (*ssh.Client, error) { return nil, errors.New("it was not its turn") },
	}
	cancel(given)
	if _, err := client.Hold(ctx); !errors.Is(err, given) {
		t.Errorf("the error is %v", err)
	}
	for range cap(logins) {
		<-logins
	}
}

// TestTurnedAway: a client that an overloaded server turns away tries again; if it always is, that becomes an error.
func TestTurnedAway(t *testing.T) {
	for turnedAway, ok := range map[int]bool{3: true, 1000: false} {
		tries := 0
		client := &Client{limit: patience.Limit, connect: func(context.Context, *steps) (*ssh.Client, error) {
			if tries++; tries <= turnedAway {
				return nil, Failed(errTurnedAway, "closed")
			}
			return nil, errors.New("let in")
		}}
		_, err := client.Hold(t.Context())
		if errors.Is(err, errTurnedAway) == ok || tries > 10 {
			t.Errorf("turned away %d times, it gave up after %d tries with: %v", turnedAway, tries, err)
		}
	}
}
