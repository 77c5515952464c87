package sshclient

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

func TestJumpHost(t *testing.T) {
	sshd.Isolate(t)
	socket := startEcho(t)
	jump, server := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{})
	both := jump.Known(t, sshd.Ed25519()) + server.Known(t, sshd.Ed25519())
	credentials := server.Credentials(t)
	credentials.JumpHost, credentials.KnownHostsText = "guard@"+jump.Addr, both
	client := clientOf(t, "ops@"+server.Addr, credentials)
	release, err := client.Hold(t.Context())
	must(t, err)
	must(t, echo(t, client, "unix", socket))
	must(t, echo(t, client, "unix", socket))
	if len(jump.Users()) != 1 || len(server.Users()) != 1 {
		t.Errorf("%d logins at the jump host and %d at the server, want 1 each", len(jump.Users()), len(server.Users()))
	}
	if got := strings.Join(jump.Opened(), " "); got != server.Addr {
		t.Errorf("the jump host forwarded to %s, want %s", got, server.Addr)
	}
	if got := jump.Users()[0] + " " + server.Users()[0]; got != "guard ops" {
		t.Errorf("logged in as %s", got)
	}

	jump.Drop()
	<-jump.Ended
	<-server.Ended
	release()
	release, err = client.Hold(t.Context())
	must(t, err)
	must(t, echo(t, client, "unix", socket))
	if len(jump.Users()) != 2 || len(server.Users()) != 2 {
		t.Errorf("%d logins at the jump host and %d at the server after a break, want 2 each", len(jump.Users()),
			len(server.Users()))
	}

	release()
	<-server.Ended
	<-jump.Ended
}

func TestJumpHostFailures(t *testing.T) {
	sshd.Isolate(t)
	socket := startEcho(t)
	server := sshd.Start(t, sshd.Options{})
	jump, prohibiting := sshd.Start(t, sshd.Options{}), sshd.Start(t, sshd.Options{Prohibit: true})
	free := listen(t, "tcp", "127.0.0.1:0")
	must(t, free.Close())

	both := jump.Known(t, sshd.Ed25519()) + server.Known(t, sshd.Ed25519())
	tests := map[string]struct {
		jump, addr, known string
		kind              error
		parts             []string
	}{
		"jump host unknown": {
			jump: jump.Addr, addr: server.Addr, known: server.Known(t, sshd.Ed25519()), kind: ErrHostKeyUnknown,
			parts: []string{"host key of " + jump.Addr},
		},
		"jump host changed": {
			jump: jump.Addr, addr: server.Addr, known: jump.Known(t, sshd.NewEd25519()), kind: ErrHostKeyChanged,
			parts: []string{"host key of " + jump.Addr},
		},
		"server unknown": {
			jump: "guard@" + jump.Addr, addr: server.Addr, known: jump.Known(t, sshd.Ed25519()),
			kind: ErrHostKeyUnknown, parts: []string{"host key of " + server.Addr, "guard@127.0.0.1 ssh-keyscan -p "},
		},
		"server refuses": {
			jump: jump.Addr, addr: free.Addr().String(), known: both,
			parts: []string{"jump host ops@" + jump.Addr + " can't reach " + free.Addr().String()},
		},
		"jump host refuses": {
			jump: prohibiting.Addr, addr: server.Addr, known: prohibiting.Known(t, sshd.Ed25519()),
			kind: ErrPermissionDenied, parts: []string{"jump host", "AllowTcpForwarding"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			credentials := server.Credentials(t)
			credentials.JumpHost, credentials.KnownHostsText = test.jump, test.known
			err := echo(t, clientOf(t, test.addr, credentials), "unix", socket)
			expect(t, err, test.kind, append(test.parts, test.addr+": ")...)
			if _, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
				t.Errorf("error is as one of the host itself: %v", err)
			}
		})
	}
	if len(server.Users()) != 0 {
		t.Error("logged in all the same")
	}
}

func TestJumpHostInvalid(t *testing.T) {
	for host, want := range map[string]string{
		"ops@bastion:0":          `jump host "ops@bastion:0": port 0`,
		"bastion/socket":         "a path is not allowed",
		"ssh://bastion":          "use [user@]host[:port]",
		"ops:hunter2@bastion":    "password can't be part",
		"ops:hunter2/@bastion":   "password can't be part",
		"-oProxyCommand=bastion": "not a valid host name",
	} {
		_, err := New(Host{Name: "gpu1", Port: DefaultPort}, Credentials{JumpHost: host}, 0)
		expect(t, err, nil, want, "gpu1: jump host")
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error shows the password: %v", err)
		}
	}
}
