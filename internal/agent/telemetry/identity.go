package telemetry

import (
	"bytes"
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
	"time"
)

const (
	// identityName is what all agents of a cluster are called to each other, whatever their addresses.
	identityName = "agent.trainyard.internal"
	// identityYears is for how long an identity is good: a cluster that is older needs another one.
	identityYears = 20
)

// NewIdentity makes the identity by which the agents of a cluster know each other, in both directions: a key, and the certificate that it
// signed for itself, in PEM. Whoever has it is one of them.
func NewIdentity() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: identityName}, DNSNames: []string{identityName},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().AddDate(identityYears, 0, 0), // clocks of hosts differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var identity bytes.Buffer
	err = errors.Join(
		pem.Encode(&identity, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.Encode(&identity, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	)
	return identity.Bytes(), err
}

// mutual returns the settings with which those that have an identity speak to each other alone, as server and as client.
func mutual(identity []byte) (*tls.Config, error) {
	own, err := tls.X509KeyPair(identity, identity)
	if err != nil {
		return nil, fmt.Errorf("the identity of the cluster's agents can't be read: %w", err)
	}
	only := x509.NewCertPool()
	only.AddCert(own.Leaf)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: identityName, Certificates: []tls.Certificate{own},
		RootCAs: only, ClientCAs: only, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
