package sshclient

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// silentConn answers some requests, and then no more.
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
