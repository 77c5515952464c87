package endpoint

import (
	"net"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
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
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func(conn net.Conn) {
				_ = agent.ServeAgent(ring, conn)
				_ = conn.Close()
			}(conn)
		}
	}()
	return socket
}

func TestKeys(t *testing.T) {
	socket := startEngine(t)
	other := sshd.NewEd25519()
	fingerprint := func(key any) string {
		s, err := ssh.NewSignerFromKey(key)
		must(t, err)
		return ssh.FingerprintSHA256(s.PublicKey())
	}
	encrypted := pemOf(t, sshd.User(), "hunter2") // once: it is meant to take long
	right, wrong := fingerprint(sshd.User()), fingerprint(other)

	tests := map[string]struct {
		ssh     SSH
		files   map[string]Secret // below ~/.ssh
		agent   []any
		offered []string // nil where it isn't of interest
		kind    error
		parts   []string // of the error; nil where the login works
	}{
		"text":                      {ssh: SSH{PrivateKey: pemOf(t, sshd.User(), "")}},
		"text, encrypted":           {ssh: SSH{PrivateKey: encrypted, Passphrase: "hunter2"}},
		"text, passphrase unneeded": {ssh: SSH{PrivateKey: pemOf(t, sshd.User(), ""), Passphrase: "hunter2"}},
		"path":                      {ssh: SSH{PrivateKeyPath: "~/.ssh/own"}, files: map[string]Secret{"own": pemOf(t, sshd.User(), "")}},
		"path, encrypted":           {ssh: SSH{PrivateKeyPath: "~/.ssh/own", Passphrase: "hunter2"}, files: map[string]Secret{"own": encrypted}},
		"agent":                     {ssh: SSH{Agent: true}, agent: []any{other, sshd.User()}, offered: []string{wrong, right}},
		"agent by default":          {agent: []any{sshd.User()}},
		"default file":              {files: map[string]Secret{"id_ed25519": pemOf(t, sshd.User(), "")}},
		"any default file":          {files: map[string]Secret{"id_ed25519": pemOf(t, other, ""), "id_rsa": pemOf(t, sshd.User(), "")}, offered: []string{wrong, right}},
		"default after the agent":   {agent: []any{other}, files: map[string]Secret{"id_ecdsa": pemOf(t, sshd.User(), "")}, offered: []string{wrong, right}},
		"default, encrypted":        {ssh: SSH{Passphrase: "hunter2"}, files: map[string]Secret{"id_ed25519": encrypted}},
		"given before the agent's":  {ssh: SSH{PrivateKey: pemOf(t, other, ""), Agent: true}, agent: []any{sshd.User()}, offered: []string{wrong, right}},

		"given is not right":      {ssh: SSH{PrivateKey: pemOf(t, other, "")}, agent: []any{sshd.User()}, files: map[string]Secret{"id_ed25519": pemOf(t, sshd.User(), "")}, kind: ErrPermissionDenied, offered: []string{wrong}, parts: []string{"accepts none of our keys", wrong + " from the given private key"}},
		"agent's is not right":    {ssh: SSH{Agent: true}, agent: []any{other}, files: map[string]Secret{"id_ed25519": pemOf(t, sshd.User(), "")}, kind: ErrPermissionDenied, offered: []string{wrong}, parts: []string{wrong + " from the agent"}},
		"nothing at all":          {kind: ErrPermissionDenied, parts: []string{"SSH_AUTH_SOCK is not set", "there is none of ~/.ssh/id_ed25519"}},
		"empty agent":             {ssh: SSH{Agent: true}, agent: []any{}, kind: ErrPermissionDenied, parts: []string{"the SSH agent has no key"}},
		"no agent":                {ssh: SSH{Agent: true}, parts: []string{"SSH_AUTH_SOCK is not set"}},
		"default stays encrypted": {files: map[string]Secret{"id_rsa": encrypted}, kind: ErrPermissionDenied, parts: []string{"~/.ssh/id_rsa is encrypted; give its passphrase"}},
		"no passphrase":           {ssh: SSH{PrivateKey: encrypted}, parts: []string{"the given private key is encrypted; give its passphrase"}},
		"wrong passphrase":        {ssh: SSH{PrivateKey: encrypted, Passphrase: "hunter3"}, parts: []string{"another passphrase"}},
		"no file":                 {ssh: SSH{PrivateKeyPath: "~/.ssh/absent"}, parts: []string{"private key: ", "absent: no such file"}},
		"no key in the file":      {ssh: SSH{PrivateKeyPath: "~/.ssh/own"}, files: map[string]Secret{"own": "ssh-ed25519 AAAA"}, parts: []string{"~/.ssh/own is no private key"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			home := isolate(t)
			for file, content := range test.files {
				write(t, string(content), home, ".ssh", file)
			}
			if test.agent != nil {
				t.Setenv("SSH_AUTH_SOCK", startAgent(t, test.agent...))
			}
			server := sshd.Start(t, sshd.Options{})
			test.ssh.User, test.ssh.KnownHostsText = "ops", server.Known(t, sshd.Ed25519())
			err := call(t, open(t, "ssh://"+server.Addr+socket, Credentials{SSH: test.ssh}))
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
