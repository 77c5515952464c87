package sshclient

import (
	"crypto"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// FuzzParseHost shows that an accepted host round-trips, and contains nothing that is special to a shell or ssh.
func FuzzParseHost(f *testing.F) {
	for _, address := range []string{
		"gpu1", "ops@gpu1:2222", "[fd00::1]:22", "[fe80::1%25eth0]", "ops:secret@gpu1", "ann%40corp@gpu1/%2f", "gpu1/",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		h, err := ParseHost(address)
		if err != nil {
			return
		}
		if again, err := ParseHost(h.String()); err != nil || again != h {
			t.Errorf("%q is %+v, which prints as %q, which is %+v, %v", address, h, h, again, err)
		}
		if strings.HasPrefix(h.Name, "-") || strings.HasPrefix(h.User, "-") ||
			strings.ContainsAny(h.Name+h.User, " '\"`$(;|&<>\n") {
			t.Errorf("%q has more than names in %+v", address, h)
		}
		if h.Name == "" || h.Port == 0 {
			t.Errorf("%q is %+v", address, h)
		}
	})
}

// FuzzKnownHosts shows that for any known_hosts text, a key that is not in it is not trusted, a key added to it is, and
// an error about invalid text names its line.
func FuzzKnownHosts(f *testing.F) {
	key := func(private crypto.Signer) ssh.PublicKey { return sshd.Signer(f, private).PublicKey() }
	known, stranger := key(sshd.Ed25519()), key(sshd.NewEd25519())
	line := string(ssh.MarshalAuthorizedKey(key(sshd.ECDSA())))
	for _, text := range []string{
		"", "# nothing\n", "gpu1", "gpu1 ssh-ed25519", "gpu1 ssh-ed25519 AAAA", "\x00", "|1|x|y " + line, "|1|",
		"* " + line, "!gpu1,* " + line,
		"[gpu1]:22 " + line, "[gpu1 " + line, "@cert-authority * " + line, "@revoked gpu1 " + line, "@cert-authority",
		"@x gpu1 " + line, "\xef\xbb\xbfgpu1 " + line,
		"gpu1 " + line + strings.Repeat("a", 1<<17),
	} {
		f.Add(text, "gpu1", uint16(22))
		f.Add(text, "fd00::1", uint16(2222))
	}
	f.Fuzz(func(t *testing.T, text, host string, port uint16) {
		if h, err := ParseHost(net.JoinHostPort(host, "22")); err != nil || h.Name != host || port == 0 {
			t.Skip("no server is called so")
		}
		server := hop{Host: Host{Name: host, Port: port}}
		trusts := func(text string, key ssh.PublicKey) error {
			k, err := loadKnownHosts(Credentials{KnownHostsText: text})
			if err != nil {
				if !strings.Contains(err.Error(), knownHostsText) || strings.Contains(err.Error(), "known_hosts-") {
					t.Errorf("the error does not name the text: %v", err)
				}
				t.Skip("the text can't be read")
			}
			keys := hostKeys{known: k, hop: server}
			keys.algorithms()
			return keys.check(server.HostPort(), &net.TCPAddr{}, key)
		}
		if err := trusts(text+"\n", stranger); err == nil || !strings.Contains(err.Error(), server.HostPort()) {
			t.Errorf("a key that is not known is trusted, or the error does not name the host: %v", err)
		}
		if strings.Contains(text, "@revoked") {
			return
		}
		added := text + "\n" + knownhosts.Line([]string{server.HostPort()}, known)
		if err := trusts(added, known); err != nil {
			t.Errorf("a key that was added is not trusted: %v", err)
		}
	})
}
