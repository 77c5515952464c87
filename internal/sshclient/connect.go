package sshclient

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os/user"
	"runtime"
	"strings"

	"golang.org/x/crypto/ssh"
)

// hop is an SSH server on the way to a host. Its user is never empty.
type hop struct {
	Host
	jump bool // not the last
}

// name returns the server's name in messages.
func (h hop) name() string {
	name := h.User + "@" + h.HostPort()
	if h.jump {
		return "jump host " + name
	}
	return name
}

// route returns the servers on the way to a host, ending with the host.
func route(to Host, credentials Credentials) ([]hop, error) {
	fallback, err := LoginUser(credentials)
	if err != nil {
		return nil, err
	}
	var hops []hop
	add := func(host Host, jump bool) {
		host.User = cmp.Or(host.User, fallback)
		hops = append(hops, hop{Host: host, jump: jump})
	}
	if credentials.JumpHost != "" {
		jump, err := ParseAddress("jump host", credentials.JumpHost, allowed, parseHost)
		if err != nil {
			return nil, Failed(nil, "%s", err)
		}
		add(jump, true)
	}
	add(to, false)
	return hops, nil
}

// LoginUser returns the user who logs in to hosts whose address names none: the one of the credentials, or the current
// user of this machine.
func LoginUser(c Credentials) (string, error) {
	if c.User != "" {
		return c.User, nil
	}
	current, err := user.Current()
	if err != nil {
		return "", Failed(nil, "no SSH user is set, and the current user is unknown: %s", err)
	}
	return loginName(runtime.GOOS, current.Username), nil
}

// loginName returns the login name of a user of this machine, without the domain that Windows puts before it.
func loginName(goos, user string) string {
	if goos == "windows" {
		return user[strings.LastIndex(user, `\`)+1:]
	}
	return user
}

// connect logs in to each server through the previous one, and returns the connection to the last. Closing it closes
// all of them.
func connect(ctx context.Context, steps *steps, hops []hop, credentials Credentials) (*ssh.Client, error) {
	known, err := loadKnownHosts(credentials)
	if err != nil {
		return nil, err
	}
	keys, err := loadKeys(ctx, credentials)
	if err != nil {
		return nil, err
	}
	defer keys.close()

	var last *ssh.Client
	var before hop
	for i, h := range hops {
		var conn net.Conn
		var err error
		if i == 0 {
			conn, err = dial(ctx, h)
		} else {
			conn, err = dialThrough(ctx, last, before, h)
		}
		if err != nil {
			return nil, err
		}
		if last, err = login(ctx, conn, h, hostKeys{known: known, hop: h, through: before}, keys, steps); err != nil {
			return nil, err
		}
		before = h
	}
	return last, nil
}

// dial connects to the first server.
func dial(ctx context.Context, h hop) (net.Conn, error) {
	ctx, cancel := Within(ctx, networkLimit)
	defer cancel()
	return NetDial(ctx, "tcp", h.HostPort())
}

// dialThrough connects to a server through the previous one, whose connection is closed with this one.
func dialThrough(ctx context.Context, client *ssh.Client, through, to hop) (net.Conn, error) {
	conn, err := client.DialContext(ctx, "tcp", to.HostPort())
	if err == nil {
		return inner{conn, client}, nil
	}
	_ = client.Close() // it leads nowhere
	return nil, Outcome(ctx, func() error {
		if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
			return refusal(through.name(), "tcp", to.HostPort(), refused)
		}
		return Failed(nil, "the connection to %s broke: %s", through.name(), err)
	})
}

// inner is a connection through outer to another server. Closing it closes outer: on its own, its reader would wait for
// a confirmation by the other server, which may be gone.
type inner struct {
	net.Conn
	outer *ssh.Client
}

// Close closes both connections.
func (c inner) Close() error { return c.outer.Close() }

// login verifies a server and logs in to it over a connection, which it closes on failure. The host key and the login
// are separate steps, to tell a slow server from an unreachable one.
func login(
	ctx context.Context, conn net.Conn, h hop, verifier hostKeys, keys *keyring, steps *steps,
) (*ssh.Client, error) {
	var verified bool
	var untrusted error
	config := &ssh.ClientConfig{
		User:              h.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(keys.signers)},
		HostKeyAlgorithms: verifier.algorithms(),
		HostKeyCallback: func(addr string, remote net.Addr, key ssh.PublicKey) error {
			untrusted = verifier.check(addr, remote, key)
			if untrusted == nil && !verified { // not when keys are exchanged again later
				verified = true
				steps.next("it answers, but the login took more than %s; check what slows down its SSH server: " +
					"load, a full disk, name lookups (UseDNS in sshd_config), PAM")
			}
			return untrusted
		},
	}
	// The handshake takes no context, and a connection through another one has no deadlines.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, h.HostPort(), config)
	if !stop() {
		if err == nil {
			_ = c.Close()
		}
		return nil, context.Cause(ctx)
	}
	if err == nil {
		steps.next(noAnswer)
		return ssh.NewClient(c, channels, requests), nil
	}
	_ = conn.Close()

	var disagreed *ssh.AlgorithmNegotiationError
	var broken *net.OpError
	switch {
	case untrusted != nil:
		return nil, untrusted
	case errors.As(err, &disagreed) && disagreed.What == "host key":
		return nil, verifier.otherType(disagreed.RequestedAlgorithms)
	case errors.Is(err, io.EOF) || errors.As(err, &broken):
		return nil, Failed(errTurnedAway,
			"%s closed the connection during the SSH handshake; check that it is an SSH server, and its log: %s",
			h.name(), err)
	case !verified:
		return nil, Failed(nil, "the SSH handshake with %s failed: %s", h.name(), err)
	}
	return nil, Failed(ErrPermissionDenied, "%s accepts none of our keys: %s: %s", h.name(), keys.offered(), err)
}
