// Package sshd is an SSH server for tests: a real one in the test's process, which forwards connections to sockets and
// addresses of this machine, and runs commands on it, as OpenSSH's sshd does.
//
//	server := sshd.Start(t, sshd.Options{})
//	address := "ssh://ops@" + server.Addr + socket
//	key, known := sshd.PEM(t, sshd.User(), ""), server.Known(t, sshd.Ed25519())
package sshd

import (
	"context"
	"crypto"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Options change a server from the default: host key Ed25519, accepts the key User, forwards to everything.
type Options struct {
	HostKeys []ssh.Signer
	// Prohibit refuses all forwarding.
	Prohibit bool
	// Stuck, if not nil, receives a value when a client offers a key, which then gets no answer.
	Stuck chan<- struct{}
	// NoSessions refuses to open sessions.
	NoSessions bool
	// Absent are sockets that the server reports as missing.
	Absent []string
	// Commands defines commands. Without Shell, all others fail as unknown ones do in a shell.
	Commands map[string]Command
	// Shell runs all other commands with /bin/sh, as the test's user. Those still running end with the test.
	Shell bool
	// Env is added to the shell's environment.
	Env []string
}

// Command is the behaviour of a command.
type Command struct {
	// Stdout and Stderr are what it writes.
	Stdout, Stderr string
	// Status is its exit status.
	Status uint32
	// Refused makes the server refuse to start it.
	Refused bool
	// Hangs, if not nil, receives a value after the output. The command then runs until its session is closed.
	Hangs chan<- struct{}
	// Does, if not nil, runs after the output and determines the exit status.
	Does func(ssh.Channel) (status uint32)
}

// Server is an SSH server. It ends with the test.
type Server struct {
	// Addr is its address: 127.0.0.1 and a port.
	Addr string
	// Ended receives a value for each connection that ended; up to a hundred are kept until received.
	Ended chan struct{}

	config  *ssh.ServerConfig
	options Options
	ctx     context.Context // the test's
	cut     chan struct{}   // closed by Cut
	cutOnce sync.Once

	mu      sync.Mutex
	live    map[*ssh.ServerConn]bool
	ended   bool
	users   []string
	offered []string
	opened  []string
}

// Start starts a server on this machine, which ends with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Addr: listener.Addr().String(), Ended: make(chan struct{}, 100),
		ctx: t.Context(), cut: make(chan struct{}), options: options, live: map[*ssh.ServerConn]bool{},
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: s.admit(ssh.FingerprintSHA256(Signer(t, User()).PublicKey()))}
	if options.HostKeys == nil {
		options.HostKeys = []ssh.Signer{Signer(t, Ed25519())}
	}
	for _, key := range options.HostKeys {
		s.config.AddHostKey(key)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		s.end()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.serve(cuttable{conn, s.cut}) })
		}
	})
	return s
}

// admit accepts only the key with this fingerprint, and records all keys offered.
func (s *Server) admit(authorized string) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if s.options.Stuck != nil {
			s.options.Stuck <- struct{}{}
			<-s.ctx.Done()
		}
		fingerprint := ssh.FingerprintSHA256(key)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.offered = append(s.offered, fingerprint)
		if fingerprint != authorized {
			return nil, errors.New("not authorized")
		}
		return nil, nil
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	c, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.live[c] = true
	if s.ended {
		_ = c.Close()
	}
	s.users = append(s.users, c.User())
	s.mu.Unlock()
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		if channel.ChannelType() == "session" {
			go s.run(channel)
			continue
		}
		go s.forward(channel)
	}
	_ = c.Wait()
	s.mu.Lock()
	delete(s.live, c)
	s.mu.Unlock()
	select {
	case s.Ended <- struct{}{}:
	default:
	}
}

// run runs the commands of a session.
func (s *Server) run(channel ssh.NewChannel) {
	if s.options.NoSessions {
		_ = channel.Reject(ssh.Prohibited, "open failed")
		return
	}
	session, requests, err := channel.Accept()
	if err != nil {
		return
	}
	defer session.Close()
	for request := range requests {
		var command struct{ Text string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			_ = request.Reply(false, nil)
			continue
		}
		does, known := s.options.Commands[command.Text]
		_ = request.Reply(!does.Refused, nil)
		if does.Refused {
			return
		}
		switch {
		case known:
		case s.options.Shell:
			does.Does = s.shell(command.Text)
		default:
			does = Command{Stderr: "sh: " + command.Text + ": not found\n", Status: 127}
		}
		_, _ = io.WriteString(session, does.Stdout)
		_, _ = io.WriteString(session.Stderr(), does.Stderr)
		if does.Hangs != nil {
			does.Hangs <- struct{}{}
			continue
		}
		if does.Does != nil {
			does.Status = does.Does(session)
		}
		_, _ = session.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{does.Status}))
		return
	}
}

// shell returns a function that runs a command in a shell.
func (s *Server) shell(command string) func(ssh.Channel) uint32 {
	return func(session ssh.Channel) uint32 {
		cmd := exec.CommandContext(s.ctx, "/bin/sh", "-c", command)
		cmd.Env = append(os.Environ(), s.options.Env...)
		cmd.Stdout, cmd.Stderr = session, session.Stderr()
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			_, _ = io.WriteString(session.Stderr(), err.Error()+"\n")
			return 127
		}
		go func() {
			_, _ = io.Copy(stdin, session)
			_ = stdin.Close()
		}()
		// The exit status is in its state, unless copying the output failed.
		_ = cmd.Wait()
		return uint32(cmd.ProcessState.ExitCode())
	}
}

// cuttable is a connection on which nothing arrives once it is cut.
type cuttable struct {
	net.Conn
	cut <-chan struct{}
}

func (c cuttable) isCut() bool {
	select {
	case <-c.cut:
		return true
	default:
		return false
	}
}

func (c cuttable) Read(p []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(p); err != nil || !c.isCut() {
			return n, err
		}
	}
}

func (c cuttable) Write(p []byte) (int, error) {
	if c.isCut() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Cut cuts the server off: all connections stay open, but nothing arrives on them any more, in either direction.
func (s *Server) Cut() { s.cutOnce.Do(func() { close(s.cut) }) }

// forward connects a channel to the socket or address that it requests.
func (s *Server) forward(channel ssh.NewChannel) {
	network, address := target(channel)
	if s.options.Prohibit {
		_ = channel.Reject(ssh.Prohibited, "open failed")
		return
	}
	if slices.Contains(s.options.Absent, address) {
		_ = channel.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	inner, err := new(net.Dialer).DialContext(context.Background(), network, address)
	if err != nil {
		_ = channel.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	s.mu.Lock()
	s.opened = append(s.opened, address)
	s.mu.Unlock()
	outer, requests, err := channel.Accept()
	if err != nil {
		_ = inner.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	var both sync.WaitGroup
	pass := func(to, from io.ReadWriter) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { pass(inner, outer) })
	both.Go(func() { pass(outer, inner) })
	both.Wait()
	_ = outer.Close()
	_ = inner.Close()
}

// target returns the socket or address that a channel requests.
func target(channel ssh.NewChannel) (network, address string) {
	switch channel.ChannelType() {
	case "direct-streamlocal@openssh.com":
		var m struct {
			Path      string
			Reserved  string
			Reserved2 uint32
		}
		if err := ssh.Unmarshal(channel.ExtraData(), &m); err != nil {
			panic(err)
		}
		return "unix", m.Path
	case "direct-tcpip":
		var m struct {
			Host   string
			Port   uint32
			Origin string
			From   uint32
		}
		if err := ssh.Unmarshal(channel.ExtraData(), &m); err != nil {
			panic(err)
		}
		return "tcp", net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port)))
	}
	return "", ""
}

// end closes all connections, including those that are being made.
func (s *Server) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.Drop()
}

// Drop closes all connections.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.live {
		_ = c.Close()
	}
}

// Users are the users of all logins so far, in order.
func (s *Server) Users() []string { return s.noted(&s.users) }

// Offered are the fingerprints of the keys that clients offered. An accepted key appears twice: without and with its
// signature.
func (s *Server) Offered() []string { return s.noted(&s.offered) }

// Opened are the sockets and addresses that connections were forwarded to.
func (s *Server) Opened() []string { return s.noted(&s.opened) }

func (s *Server) noted(notes *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*notes)
}

// Credentials returns credentials for the user ops, with the server's host key Ed25519 as the known one.
func (s *Server) Credentials(t testing.TB) engine.SSHCredentials {
	t.Helper()
	return engine.SSHCredentials{
		User: "ops", PrivateKey: engine.Secret(PEM(t, User(), "")), KnownHostsText: s.Known(t, Ed25519()),
	}
}

// Isolate keeps the keys and known hosts of whoever runs the tests out of the tests.
func Isolate(t testing.TB) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	return home
}

// Known returns the lines of a known_hosts file for these host keys of the server.
func (s *Server) Known(t testing.TB, keys ...crypto.Signer) string {
	t.Helper()
	var lines strings.Builder
	for _, key := range keys {
		lines.WriteString(knownhosts.Line([]string{s.Addr}, Signer(t, key).PublicKey()) + "\n")
	}
	return lines.String()
}
