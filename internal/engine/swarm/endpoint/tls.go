package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"sync/atomic"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// tcpDialer returns the dial function for an engine over TCP.
func tcpDialer(e Endpoint, credentials Credentials) (dialFunc, error) {
	config, err := tlsConfig(e, credentials.TLS)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := sshclient.Within(ctx, credentials.DialTimeout)
		defer cancel()
		conn, err := sshclient.NetDial(ctx, "tcp", e.host().HostPort())
		if err != nil {
			return nil, err
		}
		return handshake(ctx, conn, config, e)
	}, nil
}

// material is the content of a TLS configuration, as PEM; each part may be missing.
type material struct{ ca, cert, key []byte }

func (m material) empty() bool { return len(m.ca)+len(m.cert)+len(m.key) == 0 }

// tlsConfig returns the configuration for an endpoint: from the credentials, else from the files that came with its
// address.
func tlsConfig(e Endpoint, given TLS) (*tls.Config, error) {
	m := material{ca: []byte(given.CA), cert: []byte(given.Cert), key: []byte(given.Key)}
	source := "the given TLS material"
	folder := given.CertPath
	if folder == "" && m.empty() {
		folder = e.CertPath
	}
	if folder != "" {
		if !m.empty() {
			return nil, sshclient.Failed(nil, "TLS material is given both inline and as the folder %s; use one of them",
				folder)
		}
		var err error
		if m, err = readMaterial(folder); err != nil {
			return nil, sshclient.Failed(nil, "TLS material: %s", err)
		}
		source = folder
	}
	if m.empty() {
		return nil, sshclient.Failed(nil, "an engine over TCP requires TLS, and no TLS material is given: "+
			"give the provider a CA, and a client certificate with its key if the engine requires one (or set "+
			"DOCKER_CERT_PATH to a folder with ca.pem, cert.pem and key.pem); "+
			"or use ssh://, which needs none")
	}
	return m.config(e.Host, source)
}

// readMaterial reads the files of a folder, named as docker names them.
func readMaterial(folder string) (m material, err error) {
	for name, content := range map[string]*[]byte{"ca.pem": &m.ca, "cert.pem": &m.cert, "key.pem": &m.key} {
		data, err := sshclient.ReadFile(filepath.Join(folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return material{}, err
		}
		*content = data
	}
	if m.empty() {
		return material{}, fmt.Errorf("no ca.pem, cert.pem or key.pem in %s", folder)
	}
	return m, nil
}

// config returns the configuration that verifies the host with this material.
func (m material) config(host, source string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if len(m.ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(m.ca) {
			return nil, sshclient.Failed(nil,
				"the CA in %s contains no PEM certificate, which begins with -----BEGIN CERTIFICATE-----", source)
		}
	}
	if (len(m.cert) == 0) != (len(m.key) == 0) {
		return nil, sshclient.Failed(nil, "%s has only one of client certificate and key; give both", source)
	}
	if len(m.cert) > 0 {
		pair, err := tls.X509KeyPair(m.cert, m.key)
		if err != nil {
			return nil, sshclient.Failed(nil, "the client certificate and key in %s: %s", source, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// handshake starts TLS on a connection, and closes it on failure.
func handshake(ctx context.Context, conn net.Conn, config *tls.Config, e Endpoint) (net.Conn, error) {
	config = config.Clone()
	wrapped := &tlsConn{endpoint: e, presented: len(config.Certificates) > 0}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		wrapped.requested = true
		if wrapped.presented {
			// Send the certificate even if the engine doesn't accept its issuer: a refusal says more than a missing
			// certificate.
			return &config.Certificates[0], nil
		}
		return &tls.Certificate{}, nil
	}
	wrapped.Conn = tls.Client(conn, config)
	if err := wrapped.HandshakeContext(ctx); err != nil {
		// After a failed handshake there is nothing to flush.
		_ = conn.Close()
		return nil, sshclient.Outcome(ctx, func() error { return wrapped.explain(err) })
	}
	return wrapped, nil
}

// tlsConn is a TLS connection that explains a refused client certificate. In TLS 1.3 the refusal comes only after the
// client has completed the handshake: as an alert or, if that is lost, as a connection reset.
type tlsConn struct {
	*tls.Conn
	endpoint             Endpoint
	requested, presented bool        // whether a certificate was
	answered             atomic.Bool // the engine accepted the connection, and sent something
}

// Read reads, and explains a refusal.
func (c *tlsConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, c.refusal(err)
}

// Write writes, and explains a refusal.
func (c *tlsConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.refusal(err)
}

func (c *tlsConn) refusal(err error) error {
	// A connection that we closed was not refused by the engine.
	if err == nil || !c.requested || c.answered.Load() || errors.Is(err, net.ErrClosed) {
		return err
	}
	return c.explain(err)
}

// explain returns the cause of a failed handshake.
func (c *tlsConn) explain(err error) error {
	f := &sshclient.Failure{Cause: err}
	var unknown x509.UnknownAuthorityError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		f.Text = "the engine's certificate is not signed by the given CA; give the CA that signed it (the engine's " +
			"tlscacert is usually the same)"
	case errors.As(err, &noTLS):
		f.Text = "the server there doesn't speak TLS; start the engine with tlsverify, or use ssh://"
	case c.requested && !c.presented:
		f.Kind = sshclient.ErrPermissionDenied
		f.Text = "the engine requires a client certificate, and none is given; give one signed by the engine's CA, " +
			"with its key"
	case c.requested:
		f.Kind = sshclient.ErrPermissionDenied
		f.Text = fmt.Sprintf("the engine refused the connection after receiving the client certificate; give one "+
			"that is signed by the engine's CA and currently valid: %s", err)
	default:
		f.Text = fmt.Sprintf("TLS: %s", err)
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		f.Text += fmt.Sprintf(" (%s)", alert)
	}
	return c.endpoint.at(f)
}
