package sshd

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// The keys of hosts, by type, and of the user that servers accept. Each is generated once, since an RSA key takes time.
var (
	Ed25519 = sync.OnceValue(NewEd25519)
	ECDSA   = sync.OnceValue(func() crypto.Signer { return made(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	RSA     = sync.OnceValue(func() crypto.Signer { return made(rsa.GenerateKey(rand.Reader, 2048)) })
	User    = sync.OnceValue(NewEd25519)
)

// NewEd25519 generates another key.
func NewEd25519() crypto.Signer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return made(key, err)
}

func made[K crypto.Signer](key K, err error) crypto.Signer {
	if err != nil {
		panic(err)
	}
	return key
}

// Signer returns a key in the form that the SSH library takes.
func Signer(t testing.TB, key crypto.Signer) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// PEM returns a private key in ssh-keygen's format, encrypted unless the passphrase is empty.
func PEM(t testing.TB, key crypto.Signer, passphrase string) string {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}
