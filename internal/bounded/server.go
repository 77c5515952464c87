package bounded

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// limits are a server's timeouts, and its maximum number of connections.
type limits struct {
	// header and read limit the time to receive the headers and the whole request, and write the time from there to the
	// end of the response. idle limits the wait for another request.
	header, read, write, idle time.Duration
	// connections is how many may be open. One more closes the one that has been waiting or answered the
	// longest, see [crowd.longest].
	connections int
}

// usual are the limits of all servers, whose clients are agents, occasionally, and a Prometheus or two.
var usual = limits{
	header: 5 * time.Second, read: 10 * time.Second, write: 30 * time.Second, idle: 2 * time.Minute, connections: 64,
}

// Serve serves a listener until ctx is done. It closes slow and idle connections, and those over the limit.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return usual.serve(ctx, listener, handler)
}

func (l limits) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: l.header, ReadTimeout: l.read, WriteTimeout: l.write, IdleTimeout: l.idle,
		MaxHeaderBytes: Headers,
		ConnState:      (&crowd{most: l.connections, open: map[net.Conn]stay{}, closing: map[net.Conn]bool{}}).note,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// crowd are a server's open connections. At the limit it closes an old one instead of refusing new ones, so that a
// flood can't lock out a scrape.
type crowd struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]stay
	// closing are closed connections that the server has not noticed yet.
	closing map[net.Conn]bool
}

// stay is the state of a connection, being answered or waiting for a request, and since when.
type stay struct {
	answered bool
	since    time.Time
}

// note records a change of a connection's state, and closes a connection if there are too many.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.open, conn)
		delete(c.closing, conn)
		return
	case c.closing[conn]:
		return
	}
	c.open[conn] = stay{state == http.StateActive, time.Now()}
	if len(c.open) <= c.most {
		return
	}
	excess := c.longest(conn)
	delete(c.open, excess)
	c.closing[excess] = true
	if secure, ok := excess.(*tls.Conn); ok {
		excess = secure.NetConn() // a TLS close may take seconds
	}
	_ = excess.Close()
}

// longest returns the connection that has been in its state the longest, except but: among waiting ones if these are
// more than half, or else among answered ones, so that neither kind crowds out the other.
func (c *crowd) longest(but net.Conn) (longest net.Conn) {
	answered := 0
	for _, s := range c.open {
		if s.answered {
			answered++
		}
	}
	longest = but
	for conn, s := range c.open {
		if conn != but && s.answered == (2*answered >= len(c.open)) &&
			(longest == but || s.since.Before(c.open[longest].since)) {
			longest = conn
		}
	}
	return longest
}
