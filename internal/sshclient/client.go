package sshclient

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Client reaches one host over one SSH connection at a time: made for the first use, shared by all, and closed with the
// last. Where a method's errors are about the host, they are a [Failure] that names it.
type Client struct {
	host    Host
	limit   time.Duration
	connect func(context.Context, *steps) (*ssh.Client, error)

	mu   sync.Mutex
	link *link // the one for the next use; nil if it has to be made
}

// New returns a client of a host, without connecting to it: an error is about the credentials. stepTimeout bounds each
// step: that a server shows its key, lets us in, opens a stream, starts a command; 30 s where it is 0. A wait for the
// logins of others does not count.
func New(host Host, credentials Credentials, stepTimeout time.Duration) (*Client, error) {
	hops, err := route(host, credentials)
	if err != nil {
		return nil, At(host.String(), err)
	}
	return &Client{host: host, limit: stepTimeout, connect: func(ctx context.Context, steps *steps) (*ssh.Client, error) {
		return connect(ctx, steps, hops, credentials)
	}}, nil
}

// Host returns the host that the client reaches.
func (c *Client) Host() Host { return c.host }

// Hold connects, and keeps the connection for further calls until it is released, or breaks.
func (c *Client) Hold(ctx context.Context) (release func(), err error) {
	release, err = c.use(ctx, func(context.Context, *ssh.Client) error { return nil })
	return release, At(c.host.String(), err)
}

// Dial connects to a socket of the host, network "unix", or from there to a host and port, network "tcp". The
// connection can CloseWrite; if the host refuses it, the error wraps its [ssh.OpenChannelError].
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

// refusal says why a server opens no stream to an address.
func refusal(server, network, address string, err *ssh.OpenChannelError) *Failure {
	option := "AllowTcpForwarding"
	if network == "unix" {
		option = "AllowStreamLocalForwarding"
	}
	if err.Reason == ssh.Prohibited {
		return Failed(ErrPermissionDenied, "%s forbids forwarding to %s; allow it (%s in sshd_config, no restrict on the key): %s", server, address, option, err.Message)
	}
	return Failed(nil, "%s can't reach %s; check the address as seen from there, and that sshd_config doesn't forbid %s: %s", server, address, option, err.Message)
}

// use opens something over the connection, which is kept until it is released. An error is what the server answered, a
// [ssh.OpenChannelError], a [Failure] or the context's.
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
		// The connection broke since its last use: a new one it is.
	}
}

// forwarded is a connection through a link, which it releases when closed.
type forwarded struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (s *forwarded) Close() error {
	defer s.release()
	return s.Conn.Close()
}

// CloseWrite says that nothing more will be written: what is at the other end sees the end of its input.
func (s *forwarded) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
