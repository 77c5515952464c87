package endpoint

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// sshDialer returns the way to an engine over SSH.
func sshDialer(e Endpoint, credentials Credentials) (dialFunc, error) {
	hops, err := route(e, credentials.SSH)
	if err != nil {
		return nil, err
	}
	t := &tunnel{
		socket: e.Socket,
		found:  credentials.OnSocket,
		limit:  credentials.dialTimeout(),
		connect: func(ctx context.Context) (*ssh.Client, error) {
			return connect(ctx, hops, credentials.SSH)
		},
	}
	return t.dial, nil
}

// tunnel forwards connections to a socket over one SSH connection at a time: made for the first, shared by all, and
// closed with the last.
type tunnel struct {
	limit   time.Duration
	connect func(context.Context) (*ssh.Client, error)
	// found, if not nil, is called with the socket's path if it isn't the default one.
	found func(socket string)

	mu     sync.Mutex
	socket string
	link   *link // the one for the next connection; nil if it has to be made
}

// link is one SSH connection: in the making, up or broken.
type link struct {
	made   chan struct{} // closed when client or err is set
	client *ssh.Client
	err    error
	users  int                // guarded by the tunnel's mu
	close  context.CancelFunc // ends the link, in the making or up
}

// dial returns a new connection to the socket.
func (t *tunnel) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := within(ctx, t.limit)
	defer cancel()
	for fresh := false; ; fresh = true {
		l, err := t.acquire(ctx)
		if err != nil {
			return nil, err
		}
		conn, err := t.open(ctx, l.client)
		if err == nil {
			return &forwarded{Conn: conn, release: sync.OnceFunc(func() { t.release(l) })}, nil
		}
		ended := ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrTimeout)
		var refused *ssh.OpenChannelError
		answered := errors.As(err, &refused)
		if !answered && !ended {
			t.forget(l) // broken, or as good as
		}
		t.release(l)
		switch {
		case answered:
			return nil, t.refusal(refused)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case fresh:
			return nil, failed(nil, "the SSH connection broke: %s", err)
		}
		// The connection broke since its last use: a new one it is.
	}
}

// open connects to the socket. If there is none at the default path, it takes the one that the host's docker command
// uses.
func (t *tunnel) open(ctx context.Context, client *ssh.Client) (net.Conn, error) {
	t.mu.Lock()
	socket := t.socket
	t.mu.Unlock()
	conn, err := client.DialContext(ctx, "unix", socket)
	var refused *ssh.OpenChannelError
	if socket != DefaultSocket || !errors.As(err, &refused) || refused.Reason == ssh.Prohibited {
		return conn, err
	}
	elsewhere := contextSocket(ctx, client)
	if elsewhere == "" || elsewhere == socket {
		return nil, err
	}
	conn, again := client.DialContext(ctx, "unix", elsewhere)
	if again != nil {
		return nil, err
	}
	t.mu.Lock()
	t.socket = elsewhere
	t.mu.Unlock()
	if t.found != nil {
		t.found(elsewhere)
	}
	return conn, nil
}

// contextCommand prints the address that a host's docker command uses, such as that of a rootless engine.
const contextCommand = "docker context inspect --format '{{.Endpoints.docker.Host}}'"

// contextSocket returns the path of the socket that a host's docker command uses, "" if it uses none or can't be asked.
func contextSocket(ctx context.Context, client *ssh.Client) string {
	session, err := client.NewSession()
	if err != nil {
		return ""
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { _ = session.Close() })() // a shell may hang
	said := &bounded.Buffer{Most: bounded.Answer}
	session.Stdout = said
	if err := session.Run(contextCommand); err != nil {
		return ""
	}
	e, err := Parse(strings.TrimSpace(string(said.Bytes())))
	if err != nil || e.Scheme != SchemeUnix {
		return ""
	}
	return e.Socket
}

// refusal says why the SSH server doesn't forward to the socket.
func (t *tunnel) refusal(err *ssh.OpenChannelError) error {
	t.mu.Lock()
	socket := t.socket
	t.mu.Unlock()
	if err.Reason == ssh.Prohibited {
		return failed(ErrPermissionDenied, "the SSH server forbids forwarding to %s; allow it (AllowStreamLocalForwarding in sshd_config, no restrict on the key): %s", socket, err.Message)
	}
	// OpenSSH doesn't tell these apart: its log on the host does.
	return failed(ErrNoSocket, "the SSH login worked, but %s can't be reached on the host; check that Docker runs there and listens at this path, "+
		"or give another (ssh://host/path/to/docker.sock), that this user is in the group docker, and that sshd_config doesn't forbid AllowStreamLocalForwarding: %s", socket, err.Message)
}

// acquire returns a link that is up. It has to be released.
func (t *tunnel) acquire(ctx context.Context) (*link, error) {
	t.mu.Lock()
	if t.link == nil {
		t.link = t.start()
	}
	l := t.link
	l.users++
	t.mu.Unlock()

	select {
	case <-l.made:
		if l.err == nil {
			return l, nil
		}
		t.release(l)
		return nil, l.err
	case <-ctx.Done():
		t.release(l)
		return nil, context.Cause(ctx)
	}
}

// release gives a link back. The last one closes it.
func (t *tunnel) release(l *link) {
	t.mu.Lock()
	l.users--
	last := l.users == 0
	if last && t.link == l {
		t.link = nil
	}
	t.mu.Unlock()
	if last {
		l.close()
	}
}

// forget takes no more connections for a link.
func (t *tunnel) forget(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link == l {
		t.link = nil
	}
}

// start makes a new link. What is made belongs to all who wait for it: it ends with the last, not the first.
func (t *tunnel) start() *link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{made: make(chan struct{}), close: cancel}
	go func() {
		defer cancel()
		defer t.forget(l)
		limited, stop := within(ctx, t.limit)
		l.client, l.err = t.connect(limited)
		stop()
		if l.err != nil {
			t.forget(l) // before anybody learns of it, and tries again
			close(l.made)
			return
		}
		close(l.made)
		// Of a connection that ends, how it was closed is of no interest.
		defer context.AfterFunc(ctx, func() { _ = l.client.Close() })()
		go keepAlive(ctx, l.client)
		_ = l.client.Wait()
	}()
	return l
}

const (
	keepAliveInterval = 15 * time.Second
	keepAlivePatience = 15 * time.Second
)

// keepAlive closes a connection whose other side has gone silent: without it, calls in flight would wait for as long
// as TCP tries. It returns when the context ends.
func keepAlive(ctx context.Context, conn interface {
	SendRequest(name string, wantReply bool, payload []byte) (bool, []byte, error)
	Close() error
}) {
	tick := time.NewTicker(keepAliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Any reply will do, a failure as well. An error means that the connection is over anyway.
		silent := time.AfterFunc(keepAlivePatience, func() { _ = conn.Close() })
		_, _, err := conn.SendRequest("keepalive@openssh.com", true, nil)
		silent.Stop()
		if err != nil {
			return
		}
	}
}

// forwarded is a connection through a link, which it releases when closed.
type forwarded struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (f *forwarded) Close() error {
	defer f.release()
	return f.Conn.Close()
}

// CloseWrite says that nothing more will be written: an attached program sees the end of its input.
func (f *forwarded) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
