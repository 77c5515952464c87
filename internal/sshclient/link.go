package sshclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/crypto/ssh"
)

// link is one SSH connection: being made, up or broken.
type link struct {
	made   chan struct{} // closed when client or err is set
	client *ssh.Client
	err    error
	users  int                // guarded by the Client's mu
	close  context.CancelFunc // ends the link, even while it is being made
}

// acquire returns a link that is up. It has to be released.
func (c *Client) acquire(ctx context.Context) (*link, error) {
	c.mu.Lock()
	if c.link == nil {
		c.link = c.start()
	}
	l := c.link
	l.users++
	c.mu.Unlock()

	select {
	case <-l.made:
		if l.err == nil {
			return l, nil
		}
		c.release(l)
		return nil, l.err
	case <-ctx.Done():
		c.release(l)
		return nil, context.Cause(ctx)
	}
}

// release gives a link back. The last user's release closes it.
func (c *Client) release(l *link) {
	c.mu.Lock()
	l.users--
	last := l.users == 0
	if last && c.link == l {
		c.link = nil
	}
	c.mu.Unlock()
	if last {
		l.close()
	}
}

// forget makes sure that a link is not used again.
func (c *Client) forget(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == l {
		c.link = nil
	}
}

// start makes a new link. It is shared by all who wait for it, so it is closed with the last of them, not the first.
func (c *Client) start() *link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{made: make(chan struct{}), close: cancel}
	go func() {
		defer cancel()
		defer c.forget(l)
		if l.client, l.err = c.logIn(ctx); l.err != nil {
			c.forget(l) // before any waiter sees the error, and tries again
			close(l.made)
			return
		}
		close(l.made)
		// How a connection was closed doesn't matter at its end.
		defer context.AfterFunc(ctx, func() { _ = l.client.Close() })()
		go keepAlive(ctx, l.client)
		_ = l.client.Wait()
	}()
	return l
}

// logins bounds this process's concurrent logins. A server turns connections away while ten others are not logged in
// yet (MaxStartups in sshd_config), and hosts may share a jump host.
var logins = make(chan struct{}, 8)

// logIn connects as soon as its turn comes.
func (c *Client) logIn(ctx context.Context) (*ssh.Client, error) {
	select {
	case logins <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-logins }()
	ctx, steps := inSteps(ctx, c.limit)
	defer steps.end()
	for pause := firstPause; ; pause *= 2 {
		client, err := c.connect(ctx, steps)
		if pause > longestPause || !errors.Is(err, errTurnedAway) {
			return client, err
		}
		select {
		case <-ctx.Done():
			return client, err
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// errTurnedAway is for a server that closes the connection during the handshake, as a server does under many concurrent
// logins, which need not all be of this process.
var errTurnedAway = errors.New("turned away")

// firstPause is the pause before the first retry after being turned away; it doubles for each further one, up to
// longestPause.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 800 * time.Millisecond
)

const (
	keepAliveInterval = 15 * time.Second
	keepAlivePatience = 15 * time.Second
)

// keepAlive closes a connection whose other side has gone silent; without it, calls in flight would wait for TCP's
// timeout. It returns when the context ends.
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
		// Any reply will do, even a failure. An error means that the connection is over anyway.
		silent := time.AfterFunc(keepAlivePatience, func() { _ = conn.Close() })
		_, _, err := conn.SendRequest("keepalive@openssh.com", true, nil)
		silent.Stop()
		if err != nil {
			return
		}
	}
}
