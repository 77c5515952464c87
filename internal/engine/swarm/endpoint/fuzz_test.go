package endpoint

import (
	"crypto"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// FuzzDefault shows that whatever Docker's configuration and its contexts say leads to an endpoint that prints as
// itself, and is reached by verified TLS, or to an error that says where it comes from.
func FuzzDefault(f *testing.F) {
	f.Add("", `{"currentContext":"lab"}`, `{"Endpoints":{"docker":{"Host":"ssh://ops@gpu1","SkipTLSVerify":false}}}`)
	f.Add("gpu2:2376", "", "")
	f.Add(" ssh://ops:hunter2@gpu1 ", "{}", "{}")
	f.Add("", `{"currentContext":"../../lab"}`, `{"Endpoints":{"docker":{"Host":"tcp://gpu2:2376"}}}`)
	f.Add("", `{"CURRENTCONTEXT":"lab"}`, `{"Endpoints":{"docker":{"Host":"tcp://gpu2:2376","SkipTLSVerify":true}}}`)
	f.Add("", `{"currentContext":"lab"}`, `{"Endpoints":{"docker":{}}}`)
	f.Add("", `{"currentContext":"lab"}`, `{"Endpoints":null}`)
	f.Add("", `{"currentContext":7}`, `[]`)
	f.Add("", `null`, `null`)
	config := f.TempDir()
	f.Fuzz(func(t *testing.T, host, content, meta string) {
		write(t, content, config, "config.json")
		write(t, meta, config, "contexts", "meta", contextID("lab"), "meta.json")
		env := map[string]string{"DOCKER_CONFIG": config, "DOCKER_HOST": host}
		for _, name := range []string{"", "lab"} {
			env["DOCKER_CONTEXT"] = name
			e, err := Default(func(name string) string { return env[name] })
			if err != nil {
				if text := err.Error(); !strings.Contains(text, "DOCKER_HOST") && !strings.Contains(text, filepath.Join(config, "config.json")) && !strings.Contains(text, "DOCKER_CONTEXT") {
					t.Errorf("the error does not say where the endpoint comes from: %v", err)
				}
				continue
			}
			again, err := Parse(e.String())
			again.CertPath = e.CertPath
			if err != nil || again != e {
				t.Errorf("%+v prints as %q, which is %+v (%v)", e, e, again, err)
			}
		}
	})
}

// FuzzPassword shows that a password that is part of an address is in no error, whatever else is wrong with the
// address.
func FuzzPassword(f *testing.F) {
	for _, rest := range []string{"gpu1", "", "gpu1:port", "[fd00::1", "gpu1/run/docker.sock", "gpu1 ", "gpu1#", "gpu1?a", "\x7f", "%zz"} {
		f.Add("ssh://", "ops", "@"+rest)
		f.Add("ssh://", "ops", "/@"+rest)
		f.Add("tcp://", "", "?@"+rest)
		f.Add("http://", "a@b", "#@"+rest)
		f.Add("", "ops", "@"+rest)
	}
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		const password = "hunter2"
		if strings.Contains(scheme+user+rest, password) || !strings.Contains(rest, "@") {
			t.Skip("another part of the address has the same text, or this is no password")
		}
		if _, err := Parse(scheme + user + ":" + password + rest); err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the error shows the password: %v", err)
		}
	})
}

// FuzzKnownHosts shows that whatever a known_hosts text says, a key that is not in it is not trusted, one that is added
// to it is, and a text that can't be read is told of by its line.
func FuzzKnownHosts(f *testing.F) {
	key := func(private crypto.Signer) ssh.PublicKey { return sshd.Signer(f, private).PublicKey() }
	known, stranger := key(sshd.Ed25519()), key(sshd.NewEd25519())
	line := string(ssh.MarshalAuthorizedKey(key(sshd.ECDSA())))
	for _, text := range []string{
		"", "# nothing\n", "gpu1", "gpu1 ssh-ed25519", "gpu1 ssh-ed25519 AAAA", "\x00", "|1|x|y " + line, "|1|", "* " + line, "!gpu1,* " + line,
		"[gpu1]:22 " + line, "[gpu1 " + line, "@cert-authority * " + line, "@revoked gpu1 " + line, "@cert-authority", "@x gpu1 " + line, "\xef\xbb\xbfgpu1 " + line,
		"gpu1 " + line + strings.Repeat("a", 1<<17),
	} {
		f.Add(text, "gpu1", uint16(22))
		f.Add(text, "fd00::1", uint16(2222))
	}
	f.Fuzz(func(t *testing.T, text, host string, port uint16) {
		if e, err := Parse("ssh://" + net.JoinHostPort(host, "22")); err != nil || e.Host != host || port == 0 {
			t.Skip("no server is called so")
		}
		server := hop{Endpoint: Endpoint{Scheme: SchemeSSH, Host: host, Port: port}}
		trusts := func(text string, key ssh.PublicKey) error {
			k, err := loadKnownHosts(SSH{KnownHostsText: text})
			if err != nil {
				if !strings.Contains(err.Error(), knownHostsText) || strings.Contains(err.Error(), "known_hosts-") {
					t.Errorf("the error does not name the text: %v", err)
				}
				t.Skip("the text can't be read")
			}
			keys := hostKeys{known: k, hop: server}
			keys.algorithms()
			return keys.check(server.hostPort(), &net.TCPAddr{}, key)
		}
		if err := trusts(text+"\n", stranger); err == nil || !strings.Contains(err.Error(), server.hostPort()) {
			t.Errorf("a key that is not known is trusted, or the error does not name the host: %v", err)
		}
		if strings.Contains(text, "@revoked") {
			return
		}
		added := text + "\n" + knownhosts.Line([]string{server.hostPort()}, known)
		if err := trusts(added, known); err != nil {
			t.Errorf("a key that was added is not trusted: %v", err)
		}
	})
}
