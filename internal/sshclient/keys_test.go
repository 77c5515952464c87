package sshclient

import (
	"crypto"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// startAgent runs an agent with these keys, and returns its socket.
func startAgent(t *testing.T, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, key := range keys {
		must(t, ring.Add(agent.AddedKey{PrivateKey: key}))
	}
	socket := filepath.Join(t.TempDir(), "agent.sock")
	listener := listen(t, "unix", socket)
	serve(listener, func(conn net.Conn) { _ = agent.ServeAgent(ring, conn) })
	return socket
}

func TestKeys(t *testing.T) {
	socket := startEcho(t)
	other := sshd.NewEd25519()
	fingerprint := func(key any) string {
		s, err := ssh.NewSignerFromKey(key)
		must(t, err)
		return ssh.FingerprintSHA256(s.PublicKey())
	}
	secret := func(key crypto.Signer, passphrase string) engine.Secret {
		return engine.Secret(sshd.PEM(t, key, passphrase))
	}
	own, foreign := secret(sshd.User(), ""), secret(other, "")
	encrypted := secret(sshd.User(), "hunter2") // only once, as it is slow by design
	right, wrong := fingerprint(sshd.User()), fingerprint(other)

	tests := map[string]struct {
		ssh     Credentials
		files   map[string]engine.Secret // below ~/.ssh
		agent   []any
		offered []string // nil to skip the check
		kind    error
		parts   []string // of the error; nil if the login succeeds
	}{
		"text":                      {ssh: Credentials{PrivateKey: own}},
		"text, encrypted":           {ssh: Credentials{PrivateKey: encrypted, Passphrase: "hunter2"}},
		"text, passphrase unneeded": {ssh: Credentials{PrivateKey: own, Passphrase: "hunter2"}},
		"path": {
			ssh: Credentials{IdentityFiles: []string{"~/.ssh/own"}}, files: map[string]engine.Secret{"own": own},
		},
		"path, encrypted": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/own"}, Passphrase: "hunter2"},
			files: map[string]engine.Secret{"own": encrypted},
		},
		"agent": {
			ssh: Credentials{Agent: true}, agent: []any{other, sshd.User()}, offered: []string{wrong, right},
		},
		"agent by default": {agent: []any{sshd.User()}},
		"default file":     {files: map[string]engine.Secret{"id_ed25519": own}},
		"any default file": {
			files: map[string]engine.Secret{"id_ed25519": foreign, "id_rsa": own}, offered: []string{wrong, right},
		},
		"default after the agent": {
			agent: []any{other}, files: map[string]engine.Secret{"id_ecdsa": own}, offered: []string{wrong, right},
		},
		"default, encrypted": {
			ssh: Credentials{Passphrase: "hunter2"}, files: map[string]engine.Secret{"id_ed25519": encrypted},
		},
		"given before the agent's": {
			ssh: Credentials{PrivateKey: foreign, Agent: true}, agent: []any{sshd.User()},
			offered: []string{wrong, right},
		},

		"files in their order": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/b", "~/.ssh/a"}},
			files: map[string]engine.Secret{"a": own, "b": foreign}, offered: []string{wrong, right},
		},
		"one of several encrypted": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/a", "~/.ssh/b"}, Passphrase: "hunter2"},
			files: map[string]engine.Secret{"a": foreign, "b": encrypted}, offered: []string{wrong, right},
		},
		"text before the files": {
			ssh:   Credentials{PrivateKey: foreign, IdentityFiles: []string{"~/.ssh/a"}},
			files: map[string]engine.Secret{"a": own}, offered: []string{wrong, right},
		},
		"files before the agent's": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/a"}, Agent: true},
			files: map[string]engine.Secret{"a": foreign}, agent: []any{sshd.User()}, offered: []string{wrong, right},
		},

		"given is not right": {
			ssh: Credentials{PrivateKey: foreign}, agent: []any{sshd.User()},
			files: map[string]engine.Secret{"id_ed25519": own}, kind: ErrPermissionDenied, offered: []string{wrong},
			parts: []string{"accepts none of our keys", wrong + " from the given private key"},
		},
		"agent's is not right": {
			ssh: Credentials{Agent: true}, agent: []any{other}, files: map[string]engine.Secret{"id_ed25519": own},
			kind: ErrPermissionDenied, offered: []string{wrong}, parts: []string{wrong + " from the agent"},
		},
		"nothing at all": {
			kind: ErrPermissionDenied, parts: []string{"SSH_AUTH_SOCK is not set", "found none of ~/.ssh/id_ed25519"},
		},
		"empty agent": {
			ssh: Credentials{Agent: true}, agent: []any{}, kind: ErrPermissionDenied,
			parts: []string{"the SSH agent has no key"},
		},
		"no agent": {
			ssh: Credentials{Agent: true}, parts: []string{"SSH_AUTH_SOCK is not set"},
		},
		"default stays encrypted": {
			files: map[string]engine.Secret{"id_rsa": encrypted}, kind: ErrPermissionDenied,
			parts: []string{"~/.ssh/id_rsa is encrypted; give its passphrase"},
		},
		"no passphrase": {
			ssh:   Credentials{PrivateKey: encrypted},
			parts: []string{"the given private key is encrypted; give its passphrase"},
		},
		"wrong passphrase": {
			ssh: Credentials{PrivateKey: encrypted, Passphrase: "hunter3"}, parts: []string{"wrong passphrase"},
		},
		"no file": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/absent"}},
			parts: []string{"private key: ", "absent: no such file"},
		},
		"no key in the file": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/own"}},
			files: map[string]engine.Secret{"own": "ssh-ed25519 AAAA"},
			parts: []string{"~/.ssh/own is not a valid SSH private key"},
		},
		"one of several missing": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/a", "~/.ssh/absent"}},
			files: map[string]engine.Secret{"a": own}, offered: []string{},
			parts: []string{"private key: ", "absent: no such file"},
		},
		"one of several, no passphrase": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/a", "~/.ssh/b"}},
			files: map[string]engine.Secret{"a": own, "b": encrypted}, offered: []string{},
			parts: []string{"private key: ~/.ssh/b is encrypted; give its passphrase"},
		},
		"one of several, wrong passphrase": {
			ssh:   Credentials{IdentityFiles: []string{"~/.ssh/a", "~/.ssh/b"}, Passphrase: "hunter3"},
			files: map[string]engine.Secret{"a": own, "b": encrypted}, offered: []string{},
			parts: []string{"private key: ~/.ssh/b: wrong passphrase"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			home := sshd.Isolate(t)
			for file, content := range test.files {
				write(t, string(content), home, ".ssh", file)
			}
			if test.agent != nil {
				t.Setenv("SSH_AUTH_SOCK", startAgent(t, test.agent...))
			}
			server := sshd.Start(t, sshd.Options{})
			test.ssh.User, test.ssh.KnownHostsText = "ops", server.Known(t, sshd.Ed25519())
			err := echo(t, clientOf(t, server.Addr, test.ssh), "unix", socket)
			if test.parts == nil {
				must(t, err)
			} else {
				expect(t, err, test.kind, test.parts...)
			}
			if got := slices.Compact(server.Offered()); test.offered != nil && !slices.Equal(got, test.offered) {
				t.Errorf("offered %q, want %q", got, test.offered)
			}
		})
	}
}

func TestAgentAddress(t *testing.T) {
	for name, test := range map[string]struct {
		goos, socket, network, address string
	}{
		"a socket":            {"linux", "/run/agent.sock", "unix", "/run/agent.sock"},
		"a socket on macOS":   {"darwin", "/private/tmp/agent.sock", "unix", "/private/tmp/agent.sock"},
		"nothing":             {goos: "darwin"},
		"nothing on Windows":  {"windows", "", Pipe, `\\.\pipe\openssh-ssh-agent`},
		"a pipe on Windows":   {"windows", `\\.\pipe\mine`, Pipe, `\\.\pipe\mine`},
		"a socket on Windows": {"windows", `C:\agent.sock`, "unix", `C:\agent.sock`},
	} {
		t.Run(name, func(t *testing.T) {
			network, address, err := agentAddress(test.goos, test.socket)
			if network != test.network || address != test.address || (err == nil) != (test.address != "") {
				t.Errorf("it is at %s %s, %v", network, address, err)
			}
		})
	}
}

func TestLoginName(t *testing.T) {
	for _, test := range []struct{ goos, user, want string }{
		{"linux", "ann", "ann"}, {"linux", `LAB\ann`, `LAB\ann`}, {"windows", `LAB\ann`, "ann"},
		{"windows", "ann", "ann"},
	} {
		if got := loginName(test.goos, test.user); got != test.want {
			t.Errorf("%s on %s logs in as %s, want %s", test.user, test.goos, got, test.want)
		}
	}
}
