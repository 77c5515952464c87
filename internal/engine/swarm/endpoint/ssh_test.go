package endpoint

import (
	"context"
	"crypto"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// pemOf returns a private key as ssh-keygen writes it.
func pemOf(t testing.TB, key crypto.Signer, passphrase string) Secret {
	t.Helper()
	return Secret(sshd.PEM(t, key, passphrase))
}

// credentialsOf are those that get into a server that presents the host key Ed25519.
func credentialsOf(t testing.TB, server *sshd.Server) Credentials {
	t.Helper()
	return Credentials{SSH: SSH{
		User:           "ops",
		PrivateKey:     pemOf(t, sshd.User(), ""),
		KnownHostsText: server.Known(t, sshd.Ed25519()),
	}}
}

// isolate keeps the keys and hosts of whoever runs the tests out of them.
func isolate(t testing.TB) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	return home
}

func TestSSH(t *testing.T) {
	isolate(t)
	socket := startEngine(t)
	server := sshd.Start(t, sshd.Options{})
	docker := open(t, "ssh://"+server.Addr+socket, credentialsOf(t, server))
	if len(server.Users()) != 0 {
		t.Error("connected before the first call")
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if err := call(t, docker); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	attach(t, docker)
	must(t, call(t, docker))
	if got := len(server.Users()); got != 1 {
		t.Errorf("%d SSH connections for all calls, want 1", got)
	}
	if docker.ClientVersion() != "1.44" {
		t.Errorf("API version %s was agreed on", docker.ClientVersion())
	}
	if want := []string{"ops"}; !slices.Equal(server.Users(), want) {
		t.Errorf("logged in as %q, want %q", server.Users(), want)
	}

	must(t, docker.Close())
	<-server.Ended
	must(t, call(t, docker))
	if got := len(server.Users()); got != 2 {
		t.Errorf("%d SSH connections after the client was closed and used again, want 2", got)
	}
}

func TestSSHUserOfTheAddress(t *testing.T) {
	isolate(t)
	socket := startEngine(t)
	server := sshd.Start(t, sshd.Options{})
	must(t, call(t, open(t, "ssh://root@"+server.Addr+socket, credentialsOf(t, server))))
	if want := []string{"root"}; !slices.Equal(server.Users(), want) {
		t.Errorf("logged in as %q, want %q", server.Users(), want)
	}
}

func TestSSHReconnects(t *testing.T) {
	isolate(t)
	socket := startEngine(t)
	server := sshd.Start(t, sshd.Options{})
	docker := open(t, "ssh://"+server.Addr+socket, credentialsOf(t, server))
	for i := range 3 {
		must(t, call(t, docker))
		if got := len(server.Users()); got != i+1 {
			t.Errorf("%d SSH connections after %d were dropped", got, i)
		}
		server.Drop()
		<-server.Ended
	}
}

// A connection may break without anybody having noticed yet: opening a channel is then what fails.
func TestSSHBrokenBeforeUse(t *testing.T) {
	made := 0
	socket := startEngine(t)
	isolate(t)
	server := sshd.Start(t, sshd.Options{})
	hops, credentials := hopsTo(t, server)
	t.Cleanup(server.Drop)
	links := &tunnel{socket: socket, limit: time.Minute}
	links.connect = func(ctx context.Context) (*ssh.Client, error) {
		made++
		client, err := connect(ctx, hops, credentials)
		if err == nil && made == 1 {
			must(t, client.Close())
		}
		return client, err
	}
	conn, err := links.dial(t.Context())
	must(t, err)
	must(t, conn.Close())
	if made != 2 {
		t.Errorf("%d connections were made, want 2", made)
	}
	if links.link != nil {
		t.Error("the connection is kept without a user")
	}
}

func hopsTo(t *testing.T, server *sshd.Server) ([]hop, SSH) {
	t.Helper()
	e, err := Parse("ssh://ops@" + server.Addr)
	must(t, err)
	credentials := credentialsOf(t, server).SSH
	hops, err := route(e, credentials)
	must(t, err)
	return hops, credentials
}

func TestSSHFailures(t *testing.T) {
	isolate(t)
	socket := startEngine(t)
	server := sshd.Start(t, sshd.Options{})
	prohibiting := sshd.Start(t, sshd.Options{Prohibit: true})

	free := listen(t, "tcp", "127.0.0.1:0")
	must(t, free.Close())
	closing := listen(t, "tcp", "127.0.0.1:0")
	go func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	silent := listen(t, "tcp", "127.0.0.1:0")

	tests := map[string]struct {
		addr, socket string
		change       func(*Credentials)
		kind         error
		parts        []string
	}{
		"no socket":       {addr: server.Addr, socket: "/absent/docker.sock", kind: ErrNoSocket, parts: []string{"/absent/docker.sock", "group docker"}},
		"no forwarding":   {addr: prohibiting.Addr, socket: socket, kind: ErrPermissionDenied, parts: []string{"AllowStreamLocalForwarding"}, change: func(c *Credentials) { c.SSH.KnownHostsText = prohibiting.Known(t, sshd.Ed25519()) }},
		"refused":         {addr: free.Addr().String(), kind: syscall.ECONNREFUSED, parts: []string{"refuses connections"}},
		"no SSH server":   {addr: closing.Addr().String(), parts: []string{"closed the connection"}},
		"no answer":       {addr: silent.Addr().String(), kind: ErrTimeout, parts: []string{"no answer within 50ms"}, change: func(c *Credentials) { c.DialTimeout = 50 * time.Millisecond }},
		"no key":          {addr: server.Addr, parts: []string{"the given private key is no private key"}, change: func(c *Credentials) { c.SSH.PrivateKey = "nonsense" }},
		"no known_hosts":  {addr: server.Addr, parts: []string{"~/absent", "no such file"}, change: func(c *Credentials) { c.SSH.KnownHosts = []string{"~/absent"} }},
		"bad known_hosts": {addr: server.Addr, parts: []string{"the given known_hosts text:2", "mend or remove"}, change: func(c *Credentials) { c.SSH.KnownHostsText = "# a comment\ngpu1 nonsense\n" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			credentials := credentialsOf(t, server)
			if test.change != nil {
				test.change(&credentials)
			}
			address := "ssh://ops@" + test.addr + test.socket
			err := call(t, open(t, address, credentials))
			expect(t, err, test.kind, append(test.parts, "ssh://ops@"+test.addr)...)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error says that the caller's time was over: %v", err)
			}
		})
	}
}

func TestSSHCancelled(t *testing.T) {
	isolate(t)
	silent := listen(t, "tcp", "127.0.0.1:0")
	e, err := Parse("ssh://" + silent.Addr().String())
	must(t, err)
	dial, err := e.dialer(Credentials{SSH: SSH{PrivateKey: pemOf(t, sshd.User(), "")}})
	must(t, err)

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
	if _, err := dial(ctx); !errors.Is(err, given) {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
	server.Wait()
	if closed != nil && !errors.Is(closed, syscall.ECONNRESET) {
		t.Error(closed)
	}
}

// One caller that gives up takes nothing from the others who wait for the same connection.
func TestSSHCancelledByOneOfTwo(t *testing.T) {
	isolate(t)
	server := sshd.Start(t, sshd.Options{})
	socket := startEngine(t)
	hops, credentials := hopsTo(t, server)
	proceed := make(chan struct{})
	links := &tunnel{socket: socket, limit: time.Minute, connect: func(ctx context.Context) (*ssh.Client, error) {
		<-proceed
		return connect(ctx, hops, credentials)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	first := links.dialing(ctx)
	second := links.dialing(t.Context())
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

// dialing starts to dial, and returns what waits for the outcome. It returns when the link has one user more.
func (t *tunnel) dialing(ctx context.Context) func() (net.Conn, error) {
	users := func() int {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.link == nil {
			return 0
		}
		return t.link.users
	}
	before := users()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := t.dial(ctx)
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

// silentConn answers some requests, and then no more.
type silentConn struct {
	answers int
	asked   int
	closed  chan struct{}
}

func (c *silentConn) SendRequest(string, bool, []byte) (bool, []byte, error) {
	c.asked++
	if c.asked > c.answers {
		<-c.closed
		return false, nil, io.EOF
	}
	return false, nil, nil
}

func (c *silentConn) Close() error {
	close(c.closed)
	return nil
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &silentConn{answers: 4, closed: make(chan struct{})}
		start := time.Now()
		keepAlive(t.Context(), conn)
		<-conn.closed
		if took, want := time.Since(start), 5*keepAliveInterval+keepAlivePatience; conn.asked != 5 || took != want {
			t.Errorf("asked %d times, and closed after %s, want 5 times and %s", conn.asked, took, want)
		}
	})
}

func TestKeepAliveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := &silentConn{closed: make(chan struct{})}
		var watch sync.WaitGroup
		watch.Go(func() { keepAlive(ctx, conn) })
		cancel()
		watch.Wait()
		if conn.asked != 0 {
			t.Error("asked after the end")
		}
	})
}

// TestSSHContext: an engine that isn't at the default path is found where the host's docker command finds it.
func TestSSHContext(t *testing.T) {
	isolate(t)
	socket := startEngine(t)
	for name, test := range map[string]struct {
		path, says string
		found      string
		reached    bool
	}{
		"rootless":                  {says: "unix://" + socket + "\n", found: socket, reached: true},
		"a path that is given":      {path: "/nowhere/docker.sock", says: "unix://" + socket},
		"the default all the same":  {says: "unix://" + DefaultSocket},
		"another machine":           {says: "tcp://10.0.0.1:2376"},
		"nobody listens there":      {says: "unix:///nowhere/docker.sock"},
		"no such command":           {},
		"what is no address at all": {says: "unix://relative\nunix:///other"},
	} {
		t.Run(name, func(t *testing.T) {
			commands := map[string]string{}
			if test.says != "" {
				commands[contextCommand] = test.says
			}
			server := sshd.Start(t, sshd.Options{Absent: []string{DefaultSocket}, Commands: commands})
			var found []string
			credentials := credentialsOf(t, server)
			credentials.OnSocket = func(path string) { found = append(found, path) }
			docker := open(t, "ssh://"+server.Addr+test.path, credentials)
			err := call(t, docker)
			if (err == nil) != test.reached || err != nil && !errors.Is(err, ErrNoSocket) {
				t.Errorf("the engine: %v", err)
			}
			if test.reached {
				must(t, call(t, docker))
			}
			if want := slices.DeleteFunc([]string{test.found}, func(s string) bool { return s == "" }); !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
}
