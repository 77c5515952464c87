package telemetry

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// keyFiles is the file name pattern of keys in a folder.
	keyFiles = "*.pem"
	// keyDomain is the suffix of each key's name. Client and server select the key for a connection by its name.
	keyDomain = "agent.trainyard.internal"
	// keyYears is how long a key is valid, if nobody replaces it earlier.
	keyYears = 2
)

// NewKey returns a new key with its self-signed certificate, in PEM, by which the agents of a cluster authenticate each
// other, as servers and as clients. Whoever has it counts as one of them.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(rand.Text()) + "." + keyDomain
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore:   time.Now().AddDate(0, 0, -1), // clocks of hosts differ
		NotAfter:    time.Now().AddDate(keyYears, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = errors.Join(
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	)
	return text.Bytes(), err
}

// keyring holds the keys of an agent, each as the TLS configuration of connections that use it. There are several while
// a new key is handed out, as some agents know only the old one until they get it.
type keyring []*tls.Config

// readKeys reads the keys in a folder.
func readKeys(folder string) (keyring, error) {
	files, err := filepath.Glob(filepath.Join(folder, keyFiles))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s has no key of the cluster's agents (%s)", folder, keyFiles)
	}
	var keys keyring
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a key of the cluster's agents: %w", err)
		}
		settings, err := mutual(text)
		if err != nil {
			return nil, fmt.Errorf("reading a key of the cluster's agents (%s): %w", file, err)
		}
		keys = append(keys, settings)
	}
	return keys, nil
}

// mutual returns the configuration of servers and clients that accept only peers with the same key.
func mutual(key []byte) (*tls.Config, error) {
	own, err := tls.X509KeyPair(key, key)
	if err != nil {
		return nil, err
	}
	if len(own.Leaf.DNSNames) == 0 {
		return nil, errors.New("the certificate has no DNS name")
	}
	only := x509.NewCertPool()
	only.AddCert(own.Leaf)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: own.Leaf.DNSNames[0], Certificates: []tls.Certificate{own},
		RootCAs: only, ClientCAs: only, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// server returns the configuration of a server that accepts clients with any of the keys.
func (k keyring) server() *tls.Config {
	choose := func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, settings := range k {
			if settings.ServerName == hello.ServerName {
				return settings, nil
			}
		}
		return k[0], nil // a client without this key refuses its certificate, and says so
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: choose}
}

// dial connects to a server with the first key that the server has too.
func (k keyring) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	var refused error
	for _, settings := range k {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, settings)
		if err = secure.HandshakeContext(ctx); err == nil {
			return secure, nil
		}
		_ = conn.Close()
		refused = err
	}
	return nil, refused
}
