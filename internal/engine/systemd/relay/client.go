package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// pingAfter is how long a connection may be silent before it is pinged, and pingLimit how long the answer may take.
	pingAfter = 10 * time.Second
	pingLimit = 15 * time.Second
)

// A failure to connect is returned to all calls for failureFactor times as long as it took to detect, within these
// bounds: the many calls of one plan wait for an unreachable host only once, and a host that is back is soon used.
const (
	leastMemory   = time.Second
	mostMemory    = 30 * time.Second
	failureFactor = 2
)

// retryPatience bounds how long calls wait for an attempt that follows a failed one, from its beginning: then they get
// the earlier failure, so that a host that hangs again doesn't hold up everybody for as long as the first time. An
// earlier [ErrOutside] is awaited to the end: members are started again because of it, and it may be over.
const retryPatience = 15 * time.Second

// Client makes calls to one host.
type Client struct {
	*link
	// looked are the answers that are already known; nil for none.
	looked *looked
}

// link is one connection at a time to a host: opened by the first call, and again after it broke.
type link struct {
	// Log receives each request; nil for none.
	Log       *slog.Logger
	name      string
	transport *http.Transport

	mu   sync.Mutex
	conn *http.ClientConn
	// connecting is closed when the current attempt to connect, begun at that time, has ended; nil if there is none.
	connecting chan struct{}
	began      time.Time
	// failed is why the last attempt failed, and is returned to calls until then.
	failed error
	until  time.Time
}

// NewClient returns a client of a host that connects by dial; errors contain the name. An attempt continues after its
// caller has given up, so dial has to time out by itself.
func NewClient(name string, dial func(ctx context.Context) (net.Conn, error)) *Client {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true) // encryption is below HTTP
	return &Client{link: &link{name: name, transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		Protocols:   protocols,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingLimit},
	}}}
}

// Name is how errors name the host, unless they are its answers.
func (c *link) Name() string { return c.name }

// Close ends the connection, and its pending calls.
func (c *link) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// Forget makes the next call connect, however recently that failed, and even if an attempt is under way: what was
// missing may be there now.
func (c *link) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed, c.until, c.connecting = nil, time.Time{}, nil
}

// connect returns the connection.
func (c *link) connect(ctx context.Context) (*http.ClientConn, error) {
	for {
		c.mu.Lock()
		conn, failed, connecting := c.conn, c.failed, c.connecting
		switch {
		case conn != nil && conn.Err() == nil:
			c.mu.Unlock()
			return conn, nil
		case time.Now().Before(c.until):
			c.mu.Unlock()
			return nil, failed
		case connecting == nil:
			connecting = make(chan struct{})
			c.connecting, c.began = connecting, time.Now()
			go c.attempt(context.WithoutCancel(ctx), connecting)
		}
		var tooLong <-chan time.Time
		if failed != nil && !errors.Is(failed, ErrOutside) {
			tooLong = time.After(time.Until(c.began.Add(retryPatience)))
		}
		c.mu.Unlock()
		select {
		case <-connecting:
		case <-tooLong:
			return nil, failed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// attempt connects once. What comes of it doesn't count if it was forgotten meanwhile.
func (c *link) attempt(ctx context.Context, done chan struct{}) {
	conn, err := c.transport.NewClientConn(ctx, "http", "host:80")
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(done)
	if c.connecting != done {
		if err == nil {
			_ = conn.Close()
		}
		return
	}
	c.conn, c.failed, c.until = conn, err, time.Time{}
	if err != nil {
		c.conn, c.until = nil, now.Add(min(max(leastMemory, failureFactor*now.Sub(c.began)), mostMemory))
	}
	c.connecting = nil
}

// post sends a request, and returns the body of the answer, or the error in it.
func (c *link) post(ctx context.Context, path string, body io.Reader) (io.ReadCloser, error) {
	if c.Log != nil {
		defer func(begin time.Time) {
			c.Log.DebugContext(ctx, "host call", slog.String("host", c.name),
				slog.String("call", path[strings.LastIndexByte(path, '/')+1:]),
				slog.String("duration", time.Since(begin).String()))
		}(time.Now())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host"+path, body)
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx)
	var response *http.Response
	if err == nil {
		if response, err = conn.RoundTrip(request); err != nil {
			err = &brokenError{err}
		}
	}
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response.Body, nil
	case http.StatusNotFound:
		err = fmt.Errorf("the program on %s has another version, which does not support %s", c.name, path)
	default:
		err = readFault(response.Body)
	}
	_ = response.Body.Close()
	return nil, err
}

// brokenError is the error of a connection that broke before the answer arrived.
type brokenError struct{ err error }

func (b *brokenError) Error() string { return b.err.Error() }

func (b *brokenError) Unwrap() error { return b.err }

// failure returns which host did not answer, and why. [ErrOutside] stays as it is: it is an answer.
func (c *link) failure(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		return ended
	}
	if errors.Is(err, ErrOutside) {
		return err
	}
	return fmt.Errorf("%s %w: %w", c.name, engine.ErrUnreachable, err)
}

// Watch calls changed once it watches, and after each change of a cluster on the host, until ctx is done or the
// connection is lost.
func (c *link) Watch(ctx context.Context, cluster string, changed func()) error {
	body, err := c.post(ctx, path(cluster, watchPath), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	changes := bufio.NewReader(body)
	for {
		if _, err := changes.ReadByte(); err != nil {
			return c.failure(ctx, err)
		}
		_, _ = changes.Discard(changes.Buffered()) // merges changes in quick succession
		changed()
	}
}
