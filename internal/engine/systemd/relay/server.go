package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// Serve answers over one connection until that ends, or ctx is done.
func Serve(ctx context.Context, conn net.Conn, handler http.Handler) error {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{ //nolint:gosec // its only client may do everything that this program may
		Handler:     handler,
		Protocols:   protocols,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: 1000, SendPingTimeout: pingAfter, PingTimeout: pingLimit},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	only := newOnly(conn)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(only)
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// only is a listener with a single connection, and ends with that.
type only struct {
	conn   net.Conn
	given  sync.Once
	closed chan struct{}
}

func newOnly(conn net.Conn) *only {
	l := &only{closed: make(chan struct{})}
	l.conn = &closing{Conn: conn, closed: sync.OnceFunc(func() { close(l.closed) })}
	return l
}

// Accept returns the connection, and after that waits for its end.
func (l *only) Accept() (conn net.Conn, err error) {
	l.given.Do(func() { conn = l.conn })
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, io.EOF
}

// Close ends the connection.
func (l *only) Close() error { return l.conn.Close() }

// Addr is that of the connection.
func (l *only) Addr() net.Addr { return l.conn.LocalAddr() }

type closing struct {
	net.Conn
	closed func()
}

func (c *closing) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// stream registers a handler that answers with a stream of bytes, which lasts until send returns.
func stream(mux *http.ServeMux, name string, send func(r *http.Request, w io.Writer, flush func()) error) {
	mux.HandleFunc(pattern(name), func(w http.ResponseWriter, r *http.Request) {
		begun := false
		flush := func() {
			begun = true
			_ = http.NewResponseController(w).Flush() // otherwise the client is gone
		}
		err := send(r, w, flush)
		switch {
		case err != nil && begun:
			panic(http.ErrAbortHandler) // the only way to tell the client that the stream is incomplete
		case err != nil:
			refuse(w, err)
		}
	})
}

// AnswerWatch registers the handler of [Client.Watch] with a server.
func AnswerWatch(mux *http.ServeMux, watch func(ctx context.Context, cluster string) (<-chan struct{}, error)) {
	stream(mux, watchPath, func(r *http.Request, w io.Writer, flush func()) error {
		changes, err := watch(r.Context(), r.PathValue("cluster"))
		if err != nil {
			return err
		}
		for {
			if _, err := w.Write([]byte{'.'}); err != nil {
				return err
			}
			flush()
			if _, open := <-changes; !open {
				return nil
			}
		}
	})
}
