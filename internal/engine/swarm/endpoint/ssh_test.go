package endpoint

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

func TestSSH(t *testing.T) {
	sshd.Isolate(t)
	socket := startEngine(t)
	server := sshd.Start(t, sshd.Options{})
	docker := open(t, "ssh://"+server.Addr+socket, Credentials{SSH: server.Credentials(t)})
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

func TestSSHReconnects(t *testing.T) {
	sshd.Isolate(t)
	socket := startEngine(t)
	server := sshd.Start(t, sshd.Options{})
	docker := open(t, "ssh://"+server.Addr+socket, Credentials{SSH: server.Credentials(t)})
	for i := range 3 {
		must(t, call(t, docker))
		if got := len(server.Users()); got != i+1 {
			t.Errorf("%d SSH connections after %d were dropped", got, i)
		}
		server.Drop()
		<-server.Ended
	}
}

// TestSSHFailures: errors in reaching a host pass through the Docker client unchanged, and name the endpoint.
func TestSSHFailures(t *testing.T) {
	sshd.Isolate(t)
	socket := startEngine(t)
	server, prohibiting := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{Prohibit: true})
	free := listen(t, "tcp", "127.0.0.1:0")
	must(t, free.Close())
	silent := listen(t, "tcp", "127.0.0.1:0")

	tests := map[string]struct {
		addr, socket string
		change       func(*Credentials)
		kind         error
		parts        []string
	}{
		"no socket": {
			addr: server.Addr, socket: "/absent/docker.sock", kind: ErrNoSocket,
			parts: []string{"/absent/docker.sock", "docker group"},
		},
		"no forwarding": {
			addr: prohibiting.Addr, socket: socket, kind: sshclient.ErrPermissionDenied,
			parts:  []string{"AllowStreamLocalForwarding"},
			change: func(c *Credentials) { c.SSH.KnownHostsText = prohibiting.Known(t, sshd.Ed25519()) },
		},
		"refused": {addr: free.Addr().String(), kind: syscall.ECONNREFUSED, parts: []string{"refuses connections"}},
		"no answer": {
			addr: silent.Addr().String(), kind: sshclient.ErrTimeout, parts: []string{"no answer within 50ms"},
			change: func(c *Credentials) { c.DialTimeout = 50 * time.Millisecond },
		},
		"unknown": {
			addr: server.Addr, socket: socket, kind: sshclient.ErrHostKeyUnknown, parts: []string{"ssh-keyscan"},
			change: func(c *Credentials) { c.SSH.KnownHostsText = "# nobody" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			credentials := Credentials{SSH: server.Credentials(t)}
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

func TestJumpHostInvalid(t *testing.T) {
	e, err := Parse("ssh://gpu1")
	must(t, err)
	_, err = e.Client(Credentials{SSH: sshclient.Credentials{JumpHost: "ops@bastion:0"}})
	expect(t, err, nil, `ssh://gpu1: jump host "ops@bastion:0": port 0`)
}

// TestSSHContext: an engine that isn't at the default path is found where the host's docker command finds it.
func TestSSHContext(t *testing.T) {
	sshd.Isolate(t)
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
			commands := map[string]sshd.Command{}
			if test.says != "" {
				commands[contextCommand] = sshd.Command{Stdout: test.says}
			}
			server := sshd.Start(t, sshd.Options{Absent: []string{DefaultSocket}, Commands: commands})
			var found []string
			credentials := Credentials{SSH: server.Credentials(t)}
			credentials.OnSocket = func(path string) { found = append(found, path) }
			docker := open(t, "ssh://"+server.Addr+test.path, credentials)
			err := call(t, docker)
			if (err == nil) != test.reached || err != nil && !errors.Is(err, ErrNoSocket) {
				t.Errorf("the engine: %v", err)
			}
			if test.reached {
				must(t, call(t, docker))
			}
			if got := len(server.Users()); got != 1 {
				t.Errorf("%d logins, want 1", got)
			}
			if want := slices.DeleteFunc([]string{test.found}, func(s string) bool {
				return s == ""
			}); !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
}
