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
	// header and read bound what it takes until the headers, and all of a request are there. write bounds what it takes
	// from there until the answer is out, and idle how long a connection may wait for another request.
	header, read, write, idle time.Duration
	// connections is how many may be open. One more closes the one that has kept the server waiting the longest.
	connections int
}

// usual are the limits of all servers. Their clients are agents, now and then, and a Prometheus or two.
var usual = limits{header: 5 * time.Second, read: 10 * time.Second, write: 30 * time.Second, idle: 2 * time.Minute, connections: 64}

// Serve answers requests at a listener until ctx is done. It closes slow and idle connections, and those over its
// limit.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return usual.serve(ctx, listener, handler)
}

func (l limits) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: l.header, ReadTimeout: l.read, WriteTimeout: l.write, IdleTimeout: l.idle, MaxHeaderBytes: Headers,
		ConnState: (&crowd{most: l.connections, open: map[net.Conn]stay{}, closing: map[net.Conn]bool{}}).note,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// crowd are a server's open connections. Refusing new ones at the limit would lock out a scrape behind a flood.
type crowd struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]stay
	// closing are those that were one too many, until the server has noticed.
	closing map[net.Conn]bool
}

// stay is what a connection has been doing since a moment: having a request answered, or keeping the server waiting for
// one.
type stay struct {
	answered bool
	since    time.Time
}

// note takes notice of what a connection does, and closes one where there are too many.
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
		excess = secure.NetConn() // to say good-bye may take seconds
	}
	_ = excess.Close()
}

// longest returns the connection, other than the one that has just done something, that has been at it the longest: of
// those that wait where these are more than half, and else of those that are answered, so that neither crowds out the
// other.
func (c *crowd) longest(but net.Conn) (longest net.Conn) {
	answered := 0
	for _, s := range c.open {
		if s.answered {
			answered++
		}
	}
	longest = but
	for conn, s := range c.open {
		if conn != but && s.answered == (2*answered >= len(c.open)) && (longest == but || s.since.Before(c.open[longest].since)) {
			longest = conn
		}
	}
	return longest
}
