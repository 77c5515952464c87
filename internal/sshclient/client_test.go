package sshclient

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestClient: all streams and commands share one connection; it is closed with the last of them, and the next use makes
// a new one.
func TestClient(t *testing.T) {
	sshd.Isolate(t)
	socket, port := startEcho(t), listen(t, "tcp", "127.0.0.1:0")
	serve(port, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"nproc": {Stdout: "16\n"}}})
	client := openTo(t, server)
	if len(server.Users()) != 0 {
		t.Error("connected before the first use")
	}
	release, err := client.Hold(t.Context())
	must(t, err)
	var uses sync.WaitGroup
	for range 10 {
		for network, address := range map[string]string{"unix": socket, "tcp": port.Addr().String()} {
			uses.Go(func() {
				if err := echo(t, client, network, address); err != nil {
					t.Error(err)
				}
			})
		}
		uses.Go(func() {
			if output, err := client.Run(t.Context(), "nproc"); err != nil || string(output) != "16\n" {
				t.Errorf("the command says %q (%v)", output, err)
			}
		})
	}
	uses.Wait()
	if want := []string{"ops"}; !slices.Equal(server.Users(), want) {
		t.Errorf("logged in as %q, want %q", server.Users(), want)
	}

	release()
	<-server.Ended
	must(t, echo(t, client, "unix", socket))
	<-server.Ended
	if got := len(server.Users()); got != 2 {
		t.Errorf("%d SSH connections after one ended with its last use, want 2", got)
	}
}

func TestUserOfTheAddress(t *testing.T) {
	sshd.Isolate(t)
	server := sshd.Start(t, sshd.Options{})
	must(t, echo(t, clientOf(t, "root@"+server.Addr, server.Credentials(t)), "unix", startEcho(t)))
	if want := []string{"root"}; !slices.Equal(server.Users(), want) {
		t.Errorf("logged in as %q, want %q", server.Users(), want)
	}
}

// TestBrokenBeforeUse: if a connection broke unnoticed, opening a channel fails.
func TestBrokenBeforeUse(t *testing.T) {
	sshd.Isolate(t)
	socket := startEcho(t)
	server := sshd.Start(t, sshd.Options{Commands: map[string]sshd.Command{"true": {}}})
	for name, use := range map[string]func(*Client) error{
		"a stream":  func(c *Client) error { return echo(t, c, "unix", socket) },
		"a command": func(c *Client) error { _, err := c.Run(t.Context(), "true"); return err },
	} {
		made, client := 0, openTo(t, server)
		connect := client.connect
		client.connect = func(ctx context.Context, steps *steps) (*ssh.Client, error) {
			made++
			broken, err := connect(ctx, steps)
			if err == nil && made == 1 {
				must(t, broken.Close())
			}
			return broken, err
		}
		if err := use(client); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if made != 2 {
			t.Errorf("%s: %d connections were made, want 2", name, made)
		}
		if client.link != nil {
			t.Errorf("%s: the connection is kept without a user", name)
		}
	}
}

func TestFailures(t *testing.T) {
	sshd.Isolate(t)
	socket := startEcho(t)
	server, prohibiting := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{Prohibit: true})
	free := listen(t, "tcp", "127.0.0.1:0")
	must(t, free.Close())
	closing, silent := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	serve(closing, func(net.Conn) {})

	tests := map[string]struct {
		addr, network, address string // server, "unix" and socket if empty
		change                 func(*Credentials)
		limit                  time.Duration
		refused                bool // by the host
		kind                   error
		parts                  []string
	}{
		"no socket": {
			address: "/absent/docker.sock", refused: true,
			parts: []string{"the SSH server can't reach /absent/docker.sock", "AllowStreamLocalForwarding"},
		},
		"no port": {
			network: "tcp", address: free.Addr().String(), refused: true,
			parts: []string{"the SSH server can't reach " + free.Addr().String(), "AllowTcpForwarding"},
		},
		"no forwarding": {
			addr: prohibiting.Addr, refused: true, kind: ErrPermissionDenied,
			parts:  []string{"AllowStreamLocalForwarding"},
			change: func(c *Credentials) { c.KnownHostsText = prohibiting.Known(t, sshd.Ed25519()) },
		},
		"no forwarding, TCP": {
			addr: prohibiting.Addr, network: "tcp", address: "127.0.0.1:1", refused: true, kind: ErrPermissionDenied,
			parts:  []string{"AllowTcpForwarding"},
			change: func(c *Credentials) { c.KnownHostsText = prohibiting.Known(t, sshd.Ed25519()) },
		},
		"refused": {
			addr: free.Addr().String(), kind: syscall.ECONNREFUSED, parts: []string{"refuses connections"},
		},
		"no SSH server": {addr: closing.Addr().String(), parts: []string{"closed the connection"}},
		"no answer": {
			addr: silent.Addr().String(), kind: ErrTimeout, parts: []string{"no answer within 50ms"},
			limit: 50 * time.Millisecond,
		},
		"no key": {
			parts:  []string{"the given private key is not a valid SSH private key"},
			change: func(c *Credentials) { c.PrivateKey = "nonsense" },
		},
		"no known_hosts": {
			parts:  []string{"~/absent", "no such file"},
			change: func(c *Credentials) { c.KnownHosts = []string{"~/absent"} },
		},
		"bad known_hosts": {
			parts:  []string{"the given known_hosts text:2", "fix or remove"},
			change: func(c *Credentials) { c.KnownHostsText = "# a comment\ngpu1 nonsense\n" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			credentials := server.Credentials(t)
			if test.change != nil {
				test.change(&credentials)
			}
			host, err := ParseHost("ops@" + cmp.Or(test.addr, server.Addr))
			must(t, err)
			client, err := New(host, credentials, test.limit)
			must(t, err)
			err = echo(t, client, cmp.Or(test.network, "unix"), cmp.Or(test.address, socket))
			expect(t, err, test.kind, append(test.parts, host.String()+": ")...)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error says that the caller's time was over: %v", err)
			}
			if _, refused := errors.AsType[*ssh.OpenChannelError](err); refused != test.refused {
				t.Errorf("whether the host refused it is %t, want %t: %v", refused, test.refused, err)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	sshd.Isolate(t)
	silent := listen(t, "tcp", "127.0.0.1:0")
	client := clientOf(t, silent.Addr().String(), Credentials{PrivateKey: engine.Secret(sshd.PEM(t, sshd.User(), ""))})

	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	var closed error
	var server sync.WaitGroup
	server.Go(func() {
		conn, err := silent.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		cancel(given)
		_, closed = io.Copy(io.Discard, conn) // until the client hangs up
	})
	if _, err := client.Dial(ctx, "unix", "/any.sock"); !errors.Is(err, given) {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
	server.Wait()
	if closed != nil && !errors.Is(closed, syscall.ECONNRESET) {
		t.Error(closed)
	}
}

// TestCancelledByOneOfTwo: one caller that gives up does not affect others waiting for the same connection.
func TestCancelledByOneOfTwo(t *testing.T) {
	sshd.Isolate(t)
	server := sshd.Start(t, sshd.Options{})
	socket := startEcho(t)
	client := openTo(t, server)
	proceed, connect := make(chan struct{}), client.connect
	client.connect = func(ctx context.Context, steps *steps) (*ssh.Client, error) {
		<-proceed
		return connect(ctx, steps)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := client.dialing(ctx, socket)
	second := client.dialing(t.Context(), socket)
	cancel()
	if _, err := first(); !errors.Is(err, context.Canceled) {
		t.Errorf("the first got %v", err)
	}
	close(proceed)
	conn, err := second()
	must(t, err)
	must(t, conn.Close())
	<-server.Ended
	if len(server.Users()) != 1 {
		t.Errorf("%d SSH connections, want 1", len(server.Users()))
	}
}

// dialing starts dialing, and returns a function that waits for the result. It returns once the link has one more user.
func (c *Client) dialing(ctx context.Context, socket string) func() (net.Conn, error) {
	users := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.link == nil {
			return 0
		}
		return c.link.users
	}
	before := users()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := c.Dial(ctx, "unix", socket)
		done <- result{conn, err}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for users() == before {
		<-tick.C
	}
	return func() (net.Conn, error) {
		r := <-done
		return r.conn, r.err
	}
}
