package endpoint

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{key: sshd.NewEd25519()}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	must(t, err)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// issue returns a certificate for a host, and its key.
func (a authority) issue(t *testing.T, host string) (cert, key string) {
	t.Helper()
	own := sshd.NewEd25519()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// startTLS starts a fake engine with a certificate for a host, applies change to its TLS configuration, and returns its
// address.
func startTLS(t *testing.T, a authority, host string, change func(*tls.Config)) (addr string) {
	t.Helper()
	cert, key := a.issue(t, host)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(t, err)
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: x509.NewCertPool(),
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	config.ClientCAs.AppendCertsFromPEM([]byte(a.pem))
	if change != nil {
		change(config)
	}
	listener := listen(t, "tcp", "127.0.0.1:0")
	serve(t, tls.NewListener(listener, config), answers())
	return listener.Addr().String()
}

func TestTLS(t *testing.T) {
	own, other := newAuthority(t), newAuthority(t)
	cert, key := own.issue(t, "client")
	foreignCert, foreignKey := other.issue(t, "client")
	given := TLS{CA: own.pem, Cert: cert, Key: engine.Secret(key)}
	verifying := startTLS(t, own, "127.0.0.1", nil)
	plain := listen(t, "tcp", "127.0.0.1:0")
	serve(t, plain, answers())

	tests := map[string]struct {
		addr  string
		tls   TLS
		kind  error
		parts []string // parts of the error; nil if the call works
	}{
		"both verified": {addr: verifying, tls: given},
		"at least 1.2": {
			addr: startTLS(t, own, "127.0.0.1", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), tls: given,
		},
		"only the engine": {
			addr: startTLS(t, own, "127.0.0.1", func(c *tls.Config) { c.ClientAuth = tls.NoClientCert }),
			tls:  TLS{CA: own.pem},
		},
		"wrong CA": {
			addr: verifying, tls: TLS{CA: other.pem, Cert: cert, Key: engine.Secret(key)},
			parts: []string{"not signed by the given CA"},
		},
		"system's CAs": {
			addr: verifying, tls: TLS{Cert: cert, Key: engine.Secret(key)},
			parts: []string{"not signed by the given CA"},
		},
		"other host": {addr: startTLS(t, own, "gpu1", nil), tls: given, parts: []string{"127.0.0.1"}},
		"below 1.2": {addr: startTLS(t, own, "127.0.0.1", func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS10,
				tls.VersionTLS11
		}), tls: given, parts: []string{"protocol version"}},
		"no client cert": {
			addr: verifying, tls: TLS{CA: own.pem}, kind: sshclient.ErrPermissionDenied,
			parts: []string{"requires a client certificate, and none is given"},
		},
		"no client cert, 1.2": {
			addr: startTLS(t, own, "127.0.0.1", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }),
			tls:  TLS{CA: own.pem}, kind: sshclient.ErrPermissionDenied,
			parts: []string{"requires a client certificate, and none is given"},
		},
		"foreign client cert": {
			addr: verifying, tls: TLS{CA: own.pem, Cert: foreignCert, Key: engine.Secret(foreignKey)},
			kind: sshclient.ErrPermissionDenied, parts: []string{"give one that is signed by the engine's CA"},
		},
		"engine without TLS": {addr: plain.Addr().String(), tls: given, parts: []string{"doesn't speak TLS"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			docker := open(t, "tcp://"+test.addr, Credentials{TLS: test.tls})
			err := call(t, docker)
			if test.parts == nil {
				must(t, err)
				attach(t, docker)
				return
			}
			expect(t, err, test.kind, append(test.parts, "tcp://"+test.addr)...)
		})
	}
}

func TestTLSMaterial(t *testing.T) {
	own := newAuthority(t)
	cert, key := own.issue(t, "client")
	addr := startTLS(t, own, "127.0.0.1", nil)
	home := sshd.Isolate(t)
	folder := filepath.Join(home, "certs")
	write(t, own.pem, folder, "ca.pem")
	write(t, cert, folder, "cert.pem")
	write(t, key, folder, "key.pem")
	write(t, key, home, "half", "key.pem")
	write(t, key, home, "unreadable", "ca.pem", "folder")

	tests := map[string]struct {
		tls      TLS
		certPath string // the endpoint's CertPath
		parts    []string
	}{
		"folder":           {tls: TLS{CertPath: folder}},
		"folder at home":   {tls: TLS{CertPath: "~/certs"}},
		"of the address":   {certPath: folder},
		"given goes first": {tls: TLS{CA: own.pem, Cert: cert, Key: engine.Secret(key)}, certPath: "/absent"},
		"given path first": {tls: TLS{CertPath: folder}, certPath: "/absent"},
		"nothing":          {parts: []string{"requires TLS", "DOCKER_CERT_PATH", "ssh://"}},
		"empty folder": {
			tls: TLS{CertPath: home}, parts: []string{"no ca.pem, cert.pem or key.pem in " + home},
		},
		"unreadable": {tls: TLS{CertPath: filepath.Join(home, "unreadable")}, parts: []string{"ca.pem"}},
		"text and folder": {
			tls: TLS{CA: own.pem, CertPath: folder}, parts: []string{"both inline and as the folder"},
		},
		"half a pair": {
			tls: TLS{CA: own.pem, Cert: cert}, parts: []string{"only one of client certificate and key"},
		},
		"half a pair of files": {
			tls: TLS{CertPath: filepath.Join(home, "half")}, parts: []string{filepath.Join(home, "half"), "give both"},
		},
		"no certificate": {tls: TLS{CA: "nonsense"}, parts: []string{"BEGIN CERTIFICATE"}},
		"no pair": {
			tls:   TLS{CA: own.pem, Cert: own.pem, Key: engine.Secret(key)},
			parts: []string{"the client certificate and key"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := Parse("tcp://" + addr)
			must(t, err)
			e.CertPath = test.certPath
			docker, err := e.Client(Credentials{TLS: test.tls})
			if test.parts != nil {
				expect(t, err, nil, append(test.parts, e.String())...)
				return
			}
			must(t, err)
			must(t, call(t, docker))
			must(t, docker.Close())
		})
	}
}

func TestTLSTimeout(t *testing.T) {
	silent := listen(t, "tcp", "127.0.0.1:0")
	docker := open(t, "tcp://"+silent.Addr().String(), Credentials{
		TLS: TLS{CA: newAuthority(t).pem}, DialTimeout: 50 * time.Millisecond,
	})
	expect(t, call(t, docker), sshclient.ErrTimeout, "no answer within 50ms")
}
