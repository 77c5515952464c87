package sshclient

import (
	"crypto"
	"crypto/rand"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// hostCertificate returns a host key with a certificate for a name.
func hostCertificate(t *testing.T, key, authority crypto.Signer, principal string) ssh.Signer {
	t.Helper()
	plain := sshd.Signer(t, key)
	certificate := &ssh.Certificate{
		Key: plain.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{principal},
		ValidBefore: ssh.CertTimeInfinity,
	}
	must(t, certificate.SignCert(rand.Reader, sshd.Signer(t, authority)))
	s, err := ssh.NewCertSigner(certificate, plain)
	must(t, err)
	return s
}

func TestKnownHosts(t *testing.T) {
	sshd.Isolate(t)
	socket := startEcho(t)
	all := []ssh.Signer{sshd.Signer(t, sshd.Ed25519()), sshd.Signer(t, sshd.ECDSA()), sshd.Signer(t, sshd.RSA())}
	other, authority := sshd.NewEd25519(), sshd.NewEd25519()
	only := func(key crypto.Signer) []ssh.Signer { return []ssh.Signer{sshd.Signer(t, key)} }
	line := func(pattern string, key crypto.Signer) string {
		public := sshd.Signer(t, key).PublicKey()
		return pattern + " " + string(ssh.MarshalAuthorizedKey(public))
	}
	fingerprint := func(key crypto.Signer) string { return ssh.FingerprintSHA256(sshd.Signer(t, key).PublicKey()) }

	tests := map[string]struct {
		server []ssh.Signer
		text   func(addr string) string // with %s for the server's name in the file
		kind   error                    // nil for a host that is trusted
		parts  []string
	}{
		"only key": {
			server: only(sshd.Ed25519()), text: func(a string) string { return line(a, sshd.Ed25519()) },
		},
		"ed25519 of three": {server: all, text: func(a string) string { return line(a, sshd.Ed25519()) }},
		"ecdsa of three":   {server: all, text: func(a string) string { return line(a, sshd.ECDSA()) }},
		"rsa of three":     {server: all, text: func(a string) string { return line(a, sshd.RSA()) }},
		"two keys of a type": {
			server: all, text: func(a string) string { return line(a, other) + line(a, sshd.Ed25519()) },
		},
		"hashed": {
			server: all, text: func(a string) string { return line(knownhosts.HashHostname(a), sshd.RSA()) },
		},
		"one of several names": {
			server: all, text: func(a string) string { return line("gpu1,"+a+",gpu2", sshd.ECDSA()) },
		},
		"wildcard of any port": {server: all, text: func(string) string { return line("127.0.*", sshd.ECDSA()) }},
		"signed by the authority": {
			server: []ssh.Signer{hostCertificate(t, sshd.ECDSA(), authority, "127.0.0.1")},
			text:   func(a string) string { return line("@cert-authority "+a, authority) },
		},
		"authority of any key": {
			server: []ssh.Signer{hostCertificate(t, sshd.RSA(), authority, "127.0.0.1")},
			text:   func(string) string { return line("@cert-authority *", authority) },
		},
		"authority, plain known": {
			server: only(sshd.Ed25519()),
			text:   func(a string) string { return line("@cert-authority *", authority) + line(a, sshd.Ed25519()) },
		},

		"unknown": {
			server: only(sshd.Ed25519()), text: func(string) string { return line("gpu1", sshd.Ed25519()) },
			kind: ErrHostKeyUnknown,
			parts: []string{
				"ssh-keyscan -p ", " 127.0.0.1, and add its output to the given known_hosts text",
				fingerprint(sshd.Ed25519()), "ssh-keygen -lf",
			},
		},
		"known on another port": {
			server: only(sshd.Ed25519()), text: func(string) string { return line("127.0.0.1", sshd.Ed25519()) },
			kind: ErrHostKeyUnknown,
		},
		"excluded": {
			server: only(sshd.Ed25519()), text: func(string) string { return line("!127.0.0.1,*", sshd.Ed25519()) },
			kind: ErrHostKeyUnknown,
		},
		"changed": {
			server: all, text: func(a string) string { return line(a, other) }, kind: ErrHostKeyChanged,
			parts: []string{fingerprint(other), fingerprint(sshd.Ed25519()), "known_hosts text line 1", "has changed"},
		},
		"changed to other type": {
			server: only(sshd.Ed25519()), text: func(a string) string { return line(a, sshd.RSA()) },
			kind: ErrHostKeyChanged, parts: []string{"it has keys of type ssh-ed25519", "expected rsa-sha2-512"},
		},
		"revoked": {
			server: only(sshd.Ed25519()),
			text:   func(a string) string { return line(a, sshd.Ed25519()) + line("@revoked *", sshd.Ed25519()) },
			kind:   ErrHostKeyRevoked, parts: []string{"text line 2"},
		},
		"other authority": {
			server: []ssh.Signer{hostCertificate(t, sshd.ECDSA(), other, "127.0.0.1")},
			text:   func(a string) string { return line("@cert-authority "+a, authority) }, kind: ErrHostKeyUnknown,
			parts: []string{"host certificate"},
		},
		"signed for other host": {
			server: []ssh.Signer{hostCertificate(t, sshd.ECDSA(), authority, "gpu9")},
			text:   func(a string) string { return line("@cert-authority "+a, authority) }, kind: ErrHostKeyUnknown,
			parts: []string{"host certificate", "for this name"},
		},
		"certificate, unknown": {
			server: []ssh.Signer{hostCertificate(t, sshd.ECDSA(), authority, "127.0.0.1")},
			text:   func(string) string { return line("gpu1", sshd.Ed25519()) }, kind: ErrHostKeyUnknown,
			parts: []string{"ssh-keyscan"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := sshd.Start(t, sshd.Options{HostKeys: test.server})
			credentials := server.Credentials(t)
			credentials.KnownHostsText = test.text(knownhosts.Normalize(server.Addr))
			err := echo(t, clientOf(t, server.Addr, credentials), "unix", socket)
			if test.kind == nil {
				must(t, err)
				return
			}
			expect(t, err, test.kind, test.parts...)
			if len(server.Users()) != 0 {
				t.Error("logged in all the same")
			}
		})
	}
}

func TestKnownHostsFiles(t *testing.T) {
	home := sshd.Isolate(t)
	socket := startEcho(t)
	server := sshd.Start(t, sshd.Options{})
	right, wrong := server.Known(t, sshd.Ed25519()), server.Known(t, sshd.NewEd25519())
	try := func(change func(*Credentials)) error {
		credentials := server.Credentials(t)
		credentials.KnownHostsText = ""
		change(&credentials)
		return echo(t, clientOf(t, server.Addr, credentials), "unix", socket)
	}
	expect(t, try(func(*Credentials) {}), ErrHostKeyUnknown, ">> ~/.ssh/known_hosts")

	write(t, wrong, home, ".ssh", "known_hosts")
	expect(t, try(func(*Credentials) {}), ErrHostKeyChanged, "~/.ssh/known_hosts line 1",
		"ssh-keygen -R '"+knownhosts.Normalize(server.Addr)+"' -f ~/.ssh/known_hosts")

	own := write(t, right, home, "own")
	must(t, try(func(c *Credentials) { c.KnownHosts = []string{"~/own"} }))
	must(t, try(func(c *Credentials) { c.KnownHostsText = right }))
	expect(t, try(func(c *Credentials) { c.KnownHosts, c.KnownHostsText = []string{own}, wrong+"gpu1 broken" }), nil,
		"given known_hosts text:2")

	write(t, right, home, ".ssh", "known_hosts")
	must(t, try(func(*Credentials) {}))
}

func TestUnknownWithoutAnyFile(t *testing.T) {
	known := &knownHosts{add: defaultKnownHosts[0]}
	if got := known.sources(); !strings.Contains(got,
		"neither of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts exists") {
		t.Error(got)
	}
}
