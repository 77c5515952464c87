package sshclient

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Client reaches one host over a single SSH connection, made on first use, shared by all users, and closed by the last.
// Errors about the host are a [Failure] that names it.
type Client struct {
	host    Host
	limit   time.Duration
	connect func(context.Context, *steps) (*ssh.Client, error)

	mu   sync.Mutex
	link *link // the one for the next use; nil if it has yet to be made
}

// New returns a client of a host without connecting to it; an error is about the credentials. stepTimeout bounds each
// step of connecting: receiving the server's key, logging in, opening a stream, starting a command. 0 means 30 s, and
// waiting for other logins of this process does not count.
func New(host Host, credentials Credentials, stepTimeout time.Duration) (*Client, error) {
	hops, err := route(host, credentials)
	if err != nil {
		return nil, At(host.String(), err)
	}
	return &Client{host: host, limit: stepTimeout,
		connect: func(ctx context.Context, steps *steps) (*ssh.Client, error) {
			return connect(ctx, steps, hops, credentials)
		}}, nil
}

// Host returns the host that the client reaches.
func (c *Client) Host() Host { return c.host }

// Hold connects, and keeps the connection open for further calls until it is released or breaks.
func (c *Client) Hold(ctx context.Context) (release func(), err error) {
	release, err = c.use(ctx, func(context.Context, *ssh.Client) error { return nil })
	return release, At(c.host.String(), err)
}

// Dial connects to a socket on the host (network "unix"), or from the host to a host and port (network "tcp"). The
// connection has CloseWrite. If the SSH server refuses it, the error wraps its [ssh.OpenChannelError].
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	release, err := c.use(ctx, func(ctx context.Context, client *ssh.Client) (err error) {
		conn, err = client.DialContext(ctx, network, address)
		return err
	})
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
		f := refusal("the SSH server", network, address, refused)
		f.Cause = refused
		err = f
	}
	if err != nil {
		return nil, At(c.host.String(), err)
	}
	return &forwarded{Conn: conn, release: release}, nil
}

// refusal explains why a server opens no stream to an address.
func refusal(server, network, address string, err *ssh.OpenChannelError) *Failure {
	option := "AllowTcpForwarding"
	if network == "unix" {
		option = "AllowStreamLocalForwarding"
	}
	if err.Reason == ssh.Prohibited {
		return Failed(ErrPermissionDenied,
			"%s forbids forwarding to %s; allow it (%s in sshd_config, no restrict on the key): %s", server, address,
			option, err.Message)
	}
	return Failed(nil,
		"%s can't reach %s; check the address as seen from there, and that sshd_config doesn't forbid %s: %s", server,
		address, option, err.Message)
}

// use opens something over the connection, and keeps that until it is released. An error is the server's
// [ssh.OpenChannelError], a [Failure] or that of the context.
func (c *Client) use(ctx context.Context, open func(context.Context, *ssh.Client) error) (release func(), err error) {
	for fresh := false; ; fresh = true {
		l, err := c.acquire(ctx)
		if err != nil {
			return nil, err
		}
		limited, cancel := Within(ctx, c.limit)
		err = open(limited, l.client)
		over := context.Cause(limited)
		cancel()
		if err == nil {
			return sync.OnceFunc(func() { c.release(l) }), nil
		}
		ended := over != nil && !errors.Is(over, ErrTimeout)
		_, answered := errors.AsType[*ssh.OpenChannelError](err)
		if !answered && !ended {
			c.forget(l) // broken, or as good as
		}
		c.release(l)
		switch {
		case answered:
			return nil, err
		case over != nil:
			return nil, over
		case fresh:
			return nil, Failed(nil, "the SSH connection broke: %s", err)
		}
		// The connection broke since its last use: try a new one.
	}
}

// forwarded is a connection through a link, which it releases when it is closed.
type forwarded struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (s *forwarded) Close() error {
	defer s.release()
	return s.Conn.Close()
}

// CloseWrite ends the output: the other end sees the end of its input.
func (s *forwarded) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
